"""The values of `--format`."""

from collections.abc import Mapping

FORMATS: Mapping[str, frozenset[str]] = {
    "auto": frozenset({"otlp", "tempo", "jaeger", "sdk", "messages", "langfuse", "langsmith", "mlflow", "zipkin"}),
    "otlp": frozenset({"otlp", "tempo"}),
    "tempo": frozenset({"otlp", "tempo"}),
    "jaeger": frozenset({"jaeger", "otlp", "tempo"}),
    "openinference": frozenset({"otlp", "tempo", "sdk"}),
    "messages": frozenset({"messages"}),
    "langfuse": frozenset({"langfuse"}),
    "langsmith": frozenset({"langsmith"}),
    "mlflow": frozenset({"mlflow", "otlp", "sdk"}),
    "zipkin": frozenset({"zipkin"}),
    "cloudwatch": frozenset({"otlp"}),
}
"""What may be asked for → the shapes that are taken. Jaeger's newer answers are OTLP; OpenInference is a dialect that
comes as OTLP or as Phoenix prints it; CloudWatch keeps OTLP spans one by one."""
