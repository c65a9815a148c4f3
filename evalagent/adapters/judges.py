"""Judges by name: `rules` and `none` ask nobody; `anthropic`, `bedrock` and those of the settings ask models."""

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from evalagent.adapters.anthropic_judge import MessagesModel, Model, anthropic_model, newest, sdk_models
from evalagent.adapters.bedrock_judge import bedrock_id, bedrock_model
from evalagent.adapters.reply_cache import ReplyKeeper
from evalagent.adapters.settings import Settings
from evalagent.errors import JudgeRefused, UsageError
from evalagent.judging.cascade import Ladder
from evalagent.judging.cascade import judge as cascade
from evalagent.judging.deciding import Question, not_judged_verdicts
from evalagent.judging.metering import Meter, Price
from evalagent.judging.prompting import VERSIONS, JudgeRequest, Manner, cache_key
from evalagent.judging.replies import Reply, Usage
from evalagent.judging.rubrics import Rubrics, builtin, overridden
from evalagent.model import Verdict
from evalagent.records import JudgeUse
from evalagent.suites import JudgeSettings

WITHOUT_MODEL = ("rules", "none")


class Judge(Protocol):
    """Answers questions about steps; safe to be called from several threads at once."""

    name: str
    models: tuple[str, ...]
    """Cheap first; empty if nobody is asked."""

    def ask_question(self, question: Question) -> Verdict:
        """The verdict on one step. JudgeUnavailable: worth asking again; BudgetSpent: not, and no other question
        either. Everything else that can go wrong is a not_judged with its reason."""

    def use(self) -> JudgeUse:
        """What judging took so far."""

    def versions(self) -> Mapping[str, str]:
        """Versions of prompt, taxonomy and rubrics, for `summary.json`."""


def judge(
    name: str,
    settings: Settings,
    suite_judge: JudgeSettings | None = None,
    *,
    rubrics: Rubrics | None = None,
    cache: ReplyKeeper | None = None,
    price: Price | None = None,
) -> Judge:
    """The judge called `name`. What the suite says of models and limits goes before the settings. `price` tells the
    cost of a call; without it no cost is known. An unknown name, or no key for it: UsageError."""
    said = suite_judge or JudgeSettings()
    if name in WITHOUT_MODEL:
        return NoModel(name)
    form, key_env = settings.judge_form, None
    cheap, strong = said.cheap or settings.judge_cheap, said.strong or settings.judge_strong
    model: MessagesModel
    if name == "anthropic":
        model = anthropic_model(
            base_url=settings.judge_base_url or os.environ.get("ANTHROPIC_BASE_URL") or None,
            api_key=None,
            timeout_s=settings.judge_timeout_s,
            retries=settings.judge_retries,
        )
        client = model.client()
        if not any(getattr(client, held, None) for held in ("api_key", "auth_token", "credentials")):
            raise UsageError(
                "no key for the judge: set ANTHROPIC_API_KEY, or judge by rules with `--judge rules`", key="--judge"
            )
    elif name == "bedrock":
        model = bedrock_model(
            api=settings.bedrock_api,
            region=settings.bedrock_region,
            base_url=settings.judge_base_url,
            timeout_s=settings.judge_timeout_s,
            retries=settings.judge_retries,
        )
    elif name in settings.judges:
        endpoint = settings.judges[name]
        form, key_env = endpoint.form, endpoint.key_env
        cheap, strong = said.cheap or endpoint.cheap, said.strong or endpoint.strong or said.cheap or endpoint.cheap
        model = anthropic_model(
            base_url=endpoint.base_url,
            api_key=_key(key_env) if key_env else "none",
            timeout_s=settings.judge_timeout_s,
            retries=settings.judge_retries,
        )
    else:
        known = ", ".join([*WITHOUT_MODEL, "anthropic", "bedrock", *settings.judges])
        raise UsageError(f"there is no judge {name!r}; there are {known}", key="--judge")
    cheap, strong = cheap or _default("haiku"), strong or _default("sonnet")
    if name == "bedrock":
        cheap, strong = bedrock_id(cheap), bedrock_id(strong)
    manner = Manner(form, settings.judge_max_tokens, settings.judge_temperature, settings.judge_effort)
    ladder = Ladder(tuple(dict.fromkeys((cheap, strong))), name, manner)
    limits = [limit for limit in (said.max_cost_usd, settings.judge_max_cost_usd) if limit is not None]
    calls = [limit for limit in (said.max_calls, settings.judge_max_calls) if limit is not None]
    cost = price or (lambda _model, _usage: None)
    for one in ladder.models if limits else ():
        if cost(one, Usage(1, 1)) is None:
            raise UsageError(
                f"the price of {one} is not known, so the limit cannot be kept: add it to the suite's `prices:`, or"
                " limit the calls with `max_calls`",
                key="judge.max_cost_usd",
            )
    meter = Meter(min(calls, default=None), min(limits, default=None), cost)
    return ModelJudge(name, model, ladder, rubrics or builtin(), meter, cache, said.tau)


def read_rubrics(folder: Path | None) -> Rubrics:
    """The built-in rubrics, with those of a folder in their place; a file that is none is a UsageError."""
    if folder is None:
        return builtin()
    if not folder.is_dir():
        raise UsageError("is no folder of rubrics", file=str(folder), key="rubrics")
    texts = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix.lower() in (".yaml", ".yml", ".md", ".markdown") and path.stem != "README":
            try:
                texts[path.name] = path.read_text("utf-8")
            except UnicodeDecodeError as error:
                raise UsageError("is not a text in UTF-8", file=str(path)) from error
    return overridden(texts)


def has_key(environment: Mapping[str, str]) -> bool:
    """Whether the environment names credentials for the vendor's API; quick, without asking the SDK."""
    return any(
        environment.get(f"ANTHROPIC_{name}")
        for name in ("API_KEY", "AUTH_TOKEN", "PROFILE", "IDENTITY_TOKEN", "IDENTITY_TOKEN_FILE")
    )


class NoModel:
    """Nobody is asked: what rules do not decide is not judged."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.models: tuple[str, ...] = ()

    def ask_question(self, question: Question) -> Verdict:
        reason = f"no rule decides this step, and no model was asked (`--judge {self.name}`)"
        return not_judged_verdicts([question], reason)[question.step_id]

    def use(self) -> JudgeUse:
        return JudgeUse(self.name)

    def versions(self) -> Mapping[str, str]:
        return {}


class ModelJudge:
    """Models in a cascade, with a cache before them and a meter on them."""

    def __init__(
        self,
        name: str,
        model: Model,
        ladder: Ladder,
        rubrics: Rubrics,
        meter: Meter,
        cache: ReplyKeeper | None,
        tau: float,
    ) -> None:
        self.name = name
        self.models = ladder.models
        self._model, self._ladder, self._rubrics = model, ladder, rubrics
        self._meter, self._cache, self._tau = meter, cache, tau
        self._lock = threading.Lock()
        self._under_way: dict[str, threading.Lock] = {}

    def ask_question(self, question: Question, repeat: int = 0) -> Verdict:
        return cascade(question, self._rubrics.fitting(question), self._ladder, self._tau, self._ask, repeat)

    def use(self) -> JudgeUse:
        return self._meter.use(self.name)

    def versions(self) -> Mapping[str, str]:
        rubrics = {f"rubric:{key}": version for key, version in self._rubrics.versions().items()}
        return {**VERSIONS, **rubrics}

    def _ask(self, request: JudgeRequest) -> Reply:
        if self._cache is None:
            return self._call(request)
        key = cache_key(request, self._model.endpoint)
        with self._lock:
            same = self._under_way.setdefault(key, threading.Lock())
        with same:  # equal questions at once: the first is asked, the others wait for its answer
            reply = self._cache.get(key)
            if reply is not None:
                self._meter.from_cache(request)
                return reply
            reply = self._call(request)
            self._cache.put(key, reply)
            return reply

    def _call(self, request: JudgeRequest) -> Reply:
        if told := self._model.refusal(request.model):
            raise JudgeRefused(told)
        reserved = self._meter.reserve(request)
        try:
            reply = self._model.ask(request)
        except BaseException:
            self._meter.release(reserved)
            raise
        self._meter.settle(reserved, request, reply)
        return reply


def _default(family: str) -> str:
    model = newest(family, sdk_models())
    if model is None:
        raise UsageError(
            f"the installed SDK knows no {family} model: name one with EVALAGENT_JUDGE_CHEAP and EVALAGENT_JUDGE_STRONG"
        )
    return model


def _key(variable: str) -> str:
    key = os.environ.get(variable)
    if not key:
        raise UsageError("holds no key for the judge", key=variable)
    return key
