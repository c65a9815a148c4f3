"""Models on Amazon Bedrock, through the same SDK and protocol; credentials are those of the AWS configuration."""

from typing import Any

from evalagent.adapters.anthropic_judge import MessagesModel

PREFIX = "anthropic."
"""What Bedrock puts before a model's id."""


def bedrock_model(
    *, api: str, region: str | None, base_url: str | None, timeout_s: float, retries: int
) -> MessagesModel:
    """`api` is `messages` (Bedrock's own Messages endpoint) or `invoke` (InvokeModel)."""

    def make() -> Any:
        import anthropic

        kind = anthropic.AnthropicBedrock if api == "invoke" else anthropic.AnthropicBedrockMantle
        return kind(aws_region=region, base_url=base_url, timeout=timeout_s, max_retries=retries)

    return MessagesModel(make, base_url or f"bedrock-{api}")


def bedrock_id(model: str) -> str:
    """The model's id as Bedrock knows it; one with a provider or an ARN in it already stays as it is."""
    return model if "anthropic." in model or model.startswith("arn:") else PREFIX + model
