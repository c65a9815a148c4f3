"""Watches what the agent imports, and makes it observable just in time.

Nothing is started for an interpreter that imports nothing of interest. Told by environment:

* EVALAGENT_HOOK_INSTRUMENT   auto, openinference, openllmetry or none
* EVALAGENT_HOOK_TOOLS        `module:*` and `module:function`, separated by commas
* EVALAGENT_HOOK_DEFER        set in the warm server: instrument, but start no exporter before `begin`
* OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME    as OpenTelemetry defines them

This folder stands alone: it runs in the agent's interpreter, where EvalAgent need not be installed.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

MODULES = {
    "openai_agents": ("agents",),
    "openai-agents": ("agents",),
    "google-genai": ("google.genai",),
    "google-generativeai": ("google.generativeai",),
    "google-adk": ("google.adk",),
    "llama-index-core": ("llama_index.core",),
    "llama_index": ("llama_index.core",),
    "autogen-agentchat": ("autogen_agentchat",),
    "agno": ("agno",),
    "boto3": ("botocore",),
    "bedrock": ("botocore",),
    "langchain": ("langchain_core",),
    "llamaindex": ("llama_index.core",),
    "haystack-ai": ("haystack",),
    "vertexai": ("vertexai", "google.cloud.aiplatform"),
    "watsonx": ("ibm_watsonx_ai",),
    "pinecone": ("pinecone",),
    "chromadb": ("chromadb",),
}
"""Distribution or entry point -> modules, where the name does not tell."""

AGENT_LIBRARIES = frozenset(
    {
        "agno",
        "alephalpha",
        "anthropic",
        "bedrock",
        "chromadb",
        "cohere",
        "crewai",
        "google_generativeai",
        "groq",
        "haystack",
        "lancedb",
        "langchain",
        "llamaindex",
        "marqo",
        "mcp",
        "milvus",
        "mistralai",
        "ollama",
        "openai",
        "openai_agents",
        "pinecone",
        "qdrant",
        "replicate",
        "sagemaker",
        "together",
        "transformers",
        "vertexai",
        "voyageai",
        "watsonx",
        "weaviate",
        "writer",
    }
)
"""Entry points under `opentelemetry.instrumentation` that are about agents; requests, sqlite3 … are plumbing."""

_begun: list[bool] = []
_instrumentors: list[str] = []


def say(message: str) -> None:
    """One line on standard error; the agent goes on."""
    with contextlib.suppress(Exception):  # a closed stderr is the agent's affair
        sys.stderr.write("evalagent hook: " + " ".join(message.split()) + "\n")


def install() -> None:
    """Start watching; called once, at interpreter start."""
    how = os.environ.get("EVALAGENT_HOOK_INSTRUMENT", "none")
    watch = _Watch()
    for module, names in _wanted_tools(os.environ.get("EVALAGENT_HOOK_TOOLS", "")).items():
        watch.after(module, partial(_wrap, names))
    if how != "none":
        for module, entry in _libraries(how):
            watch.after(module, partial(_instrument, entry))
        watch.starting = True
    if watch.waiting or watch.starting:
        sys.meta_path.insert(0, watch)


def begin(imported: str = "") -> None:
    """Start the OpenTelemetry SDK, once a process; not in the warm server, which has no trial yet, nor while a part of
    OpenTelemetry is being imported (`imported` is the one that is just done)."""
    deferred = "EVALAGENT_HOOK_DEFER" in os.environ
    if _begun or deferred or os.environ.get("EVALAGENT_HOOK_INSTRUMENT", "none") == "none" or _half_imported(imported):
        return
    _begun.append(True)
    try:
        import evalagent_telemetry  # type: ignore[import-not-found]

        evalagent_telemetry.start()
    except ModuleNotFoundError as error:
        say(
            f"no spans: {error.name} is not installed for {sys.executable}; pip install opentelemetry-sdk "
            "opentelemetry-exporter-otlp-proto-http"
        )
    except Exception as error:  # noqa: BLE001 the agent must run whatever this does
        say(f"no spans: the OpenTelemetry SDK did not start: {error!r}")


def _half_imported(done: str) -> bool:
    for name, module in list(sys.modules.items()):
        if (
            name.startswith("opentelemetry.")
            and name != done
            and getattr(getattr(module, "__spec__", None), "_initializing", False)
        ):
            return True
    return False


def _wanted_tools(setting: str) -> dict[str, list[str]]:
    wanted: dict[str, list[str]] = {}
    for item in filter(None, (part.strip() for part in setting.split(","))):
        module, _, name = item.partition(":")
        wanted.setdefault(module, []).append(name or "*")
    return wanted


def _wrap(names: Sequence[str], module: ModuleType) -> None:
    begin()
    try:
        import evalagent_tools  # type: ignore[import-not-found]

        evalagent_tools.wrap(module, names, say)
    except Exception as error:  # noqa: BLE001
        say(f"the functions of {module.__name__} are not traced: {error!r}")


def _libraries(how: str) -> list[tuple[str, EntryPoint]]:
    """(module to wait for, entry point that instruments it); OpenInference goes first where both know a library."""
    from importlib.metadata import entry_points

    chosen: dict[str, EntryPoint] = {}
    families = {
        "auto": ("openllmetry", "openinference"),
        "openinference": ("openinference",),
        "openllmetry": ("openllmetry",),
    }
    found = list(entry_points(group="opentelemetry_instrumentor"))
    for family in families.get(how, ()):
        for entry in found:
            if _family(entry) == family:
                chosen.update((module, entry) for module in _modules(entry))
    if not chosen:
        say(
            f"no {'' if how == 'auto' else how + ' '}instrumentor is installed for {sys.executable}: "
            "only named tools and the agent's own spans are seen"
        )
    return list(chosen.items())


def _family(entry: EntryPoint) -> str | None:
    if entry.value.startswith("openinference."):
        return "openinference"
    if entry.value.startswith("opentelemetry.instrumentation.") and entry.name in AGENT_LIBRARIES:
        return "openllmetry"
    return None


def _modules(entry: EntryPoint) -> set[str]:
    """The modules that an instrumentor patches: what its distribution calls its `instruments`, else its own name."""
    import re

    wants = [
        re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        for requirement in (entry.dist.requires if entry.dist else None) or ()
        if "extra" in requirement and "instruments" in requirement.rpartition("extra")[2]
    ]
    names = wants or [entry.name]
    return {module for name in names for module in MODULES.get(name, (name.replace("-", "_"),))}


def _instrument(entry: EntryPoint, _loaded: ModuleType) -> None:
    if entry.value in _instrumentors:
        return
    _instrumentors.append(entry.value)
    begin()
    # The SDK's own spans would double those of the instrumentor.
    os.environ.setdefault("ANTHROPIC_OPEN_TELEMETRY", "false")
    try:
        if _family(entry) == "openinference":
            import evalagent_placing  # type: ignore[import-not-found]

            if entry.value.startswith("openinference.instrumentation.langchain"):
                entry.load()().instrument()
                evalagent_placing.note_model_runs()
            else:
                entry.load()().instrument(tracer_provider=evalagent_placing.PlacingProvider())
        else:
            entry.load()().instrument()
    except Exception as error:  # noqa: BLE001
        say(f"{entry.value} failed and is left out: {error!r}")


def _begin_after(loaded: ModuleType) -> None:
    begin(loaded.__name__)


class _Watch(MetaPathFinder):
    """Finds nothing itself: lets the other finders find, and is told when a module of interest has been executed."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Callable[[ModuleType], None]]] = {}
        self.starting = False
        """Whether the SDK is to be started when the agent (or an instrumentor) imports OpenTelemetry."""

    def after(self, module: str, action: Callable[[ModuleType], None]) -> None:
        loaded = sys.modules.get(module)
        if loaded is not None:
            action(loaded)
        else:
            self.waiting.setdefault(module, []).append(action)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        starts = self.starting and not _begun and fullname.startswith("opentelemetry.")
        if fullname not in self.waiting and not starts:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    actions = self.waiting.pop(fullname, [])
                    spec.loader = _Told(spec.loader, [*actions, _begin_after] if starts else actions)
                return spec
        return None


class _Told(Loader):
    """A loader that runs some actions after the module, and then is no longer to be seen."""

    def __init__(self, loader: Loader, actions: list[Callable[[ModuleType], None]]) -> None:
        self._loader, self._actions = loader, actions

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        for action in self._actions:
            try:
                action(module)
            except Exception as error:  # noqa: BLE001
                say(f"after the import of {module.__name__}: {error!r}")
