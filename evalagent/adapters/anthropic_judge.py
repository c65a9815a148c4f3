"""Models behind the Messages protocol, through the vendor's SDK.

The SDK is imported when the first client is made: it takes seconds.
"""

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from evalagent.errors import JudgeRefused, JudgeUnavailable, UsageError
from evalagent.judging.prompting import JudgeRequest, body
from evalagent.judging.replies import Reply, Usage
from evalagent.model import Json

VENDOR = "https://api.anthropic.com"

LATCHING = frozenset({401, 402, 403, 404})
"""Statuses that say nothing of the one request: key, account or model are wrong, and every further call would be in
vain."""

_SECRET = re.compile(r"sk-[A-Za-z0-9_-]{6,}|(?i:bearer)\s+\S+")
_MODEL = re.compile(r"claude-([a-z]+)-(\d+)(?:-(\d{1,2}))?(-\d{8})?")


class Model(Protocol):
    """Answers requests; safe to be called from several threads at once."""

    @property
    def endpoint(self) -> str:
        """Who is asked, for the cache key; empty for the vendor itself."""

    def refusal(self, model: str) -> str | None:
        """Why no call of this model can succeed any more; None as long as nothing is known against it."""

    def ask(self, request: JudgeRequest) -> Reply: ...


class MessagesModel:
    """A Model on any client of the SDK. The client is made with the first question."""

    def __init__(self, make_client: Callable[[], Any], endpoint: str) -> None:
        self._make_client = make_client
        self._client: Any = None
        self._lock = threading.Lock()
        self._endpoint = endpoint
        self._dead: dict[str, str] = {}

    @property
    def endpoint(self) -> str:
        return self._endpoint

    def refusal(self, model: str) -> str | None:
        return self._dead.get(model)

    def client(self) -> Any:
        """The SDK's client; UsageError if it cannot be made."""
        with self._lock:
            if self._client is None:
                import anthropic

                try:
                    self._client = self._make_client()
                except (anthropic.AnthropicError, ImportError, RuntimeError, ValueError) as error:
                    raise UsageError(f"the judge's client cannot be made: {_told(error)}", key="--judge") from error
            return self._client

    def ask(self, request: JudgeRequest) -> Reply:
        """One call, with the SDK's own further tries. JudgeUnavailable: the endpoint failed in a way that passes.
        JudgeRefused: it will not answer this; where key or model are at fault, `refusal` says so from then on."""
        client = self.client()
        import anthropic

        wire = body(request)
        extra = {"temperature": wire.pop("temperature")} if "temperature" in wire else None
        try:
            message = client.messages.create(**wire, extra_body=extra)
        except anthropic.APIStatusError as error:
            raise self._of_status(request.model, error) from error
        except anthropic.APIConnectionError as error:
            raise JudgeUnavailable(f"{request.model}: {_told(error)}") from error
        except (anthropic.APIError, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise JudgeUnavailable(f"{request.model}: the reply could not be read: {_told(error)}") from error
        except (anthropic.AnthropicError, RuntimeError, TypeError) as error:  # no key, no credentials
            raise self._latched(request.model, f"{request.model}: {_told(error)}") from error
        return _reply(message, request.model)

    def _of_status(self, model: str, error: Any) -> JudgeUnavailable | JudgeRefused:
        status = int(error.status_code)
        told = f"{model}: HTTP {status}: {_told(error)}"
        if status in (408, 409, 429) or status >= 500:
            return JudgeUnavailable(told)
        return self._latched(model, told) if status in LATCHING else JudgeRefused(told)

    def _latched(self, model: str, told: str) -> JudgeRefused:
        self._dead[model] = told
        return JudgeRefused(told)


def newest(family: str, models: Iterable[str]) -> str | None:
    """The id of the newest model of a family (`haiku`, `sonnet`) among some ids, the undated one if it has both."""
    best: tuple[tuple[int, int, bool], str] | None = None
    for model in models:
        hit = _MODEL.fullmatch(model)
        if hit is None or hit[1] != family:
            continue
        candidate = ((int(hit[2]), int(hit[3] or 0), hit[4] is None), model)
        best = candidate if best is None else max(best, candidate)
    return best[1] if best else None


def sdk_models() -> tuple[str, ...]:
    """The model ids that the installed SDK knows."""
    from typing import get_args

    from anthropic.types.model_param import ModelParam

    return tuple(name for part in get_args(ModelParam) for name in get_args(part) if isinstance(name, str))


def anthropic_model(*, base_url: str | None, api_key: str | None, timeout_s: float, retries: int) -> MessagesModel:
    """The vendor's API, or an endpoint that speaks its protocol. Without `api_key` the SDK finds its own."""

    def make() -> Any:
        import anthropic

        return anthropic.Anthropic(base_url=base_url, api_key=api_key, timeout=timeout_s, max_retries=retries)

    return MessagesModel(make, "" if base_url in (None, VENDOR) else str(base_url))


def _reply(message: Any, model: str) -> Reply:
    """The SDK builds its values without validating them, so nothing is taken for granted here."""
    try:
        raw: Json = message.to_dict(mode="json", warnings=False)
    except AttributeError:
        raw = None
    if not isinstance(raw, Mapping) or not isinstance(raw.get("content"), list):
        raise JudgeUnavailable(f"{model}: what came back is no reply of the Messages protocol")
    blocks = tuple(_block(block) for block in raw["content"] if isinstance(block, Mapping))
    usage = raw.get("usage")
    counts = usage if isinstance(usage, Mapping) else {}
    stop = raw.get("stop_reason")
    return Reply(
        blocks,
        stop if isinstance(stop, str) else None,
        str(raw.get("model", model)),
        Usage(
            _count(counts.get("input_tokens")),
            _count(counts.get("output_tokens")),
            _count(counts.get("cache_read_input_tokens")),
            _count(counts.get("cache_creation_input_tokens")),
        ),
    )


def _block(block: Mapping[str, Json]) -> Mapping[str, Json]:
    """What is read of a block; a model's thinking is not kept."""
    kept = {"text": ("type", "text"), "tool_use": ("type", "name", "input")}.get(str(block.get("type")), ("type",))
    return {key: block.get(key) for key in kept}


def _count(value: Json) -> int:
    return value if type(value) is int and value >= 0 else 0


def _told(error: BaseException) -> str:
    """The first line of an error, without anything that looks like a key."""
    text = str(getattr(error, "api_message", None) or error).strip() or type(error).__name__
    return _SECRET.sub("(key)", text.splitlines()[0])[:300]
