from pathlib import Path

import pytest

from evalagent.adapters.settings import Settings, described, read_settings
from evalagent.errors import UsageError

ROOT = Path(__file__).parents[2]


def test_an_empty_environment_gives_the_defaults() -> None:
    assert read_settings({}) == Settings()
    assert read_settings({"EVALAGENT_JUDGE": "", "PATH": "/bin"}) == Settings()
    assert Settings().max_node_tasks == 200


def test_every_setting_is_read_from_its_variable() -> None:
    said = {
        "EVALAGENT_HOME": "/data/evals",
        "EVALAGENT_JUDGE": "anthropic",
        "EVALAGENT_JUDGE_CHEAP": "small",
        "EVALAGENT_JUDGE_BASE_URL": "http://127.0.0.1:8080/",
        "EVALAGENT_JUDGE_TEMPERATURE": "0",
        "EVALAGENT_JUDGE_TIMEOUT_S": "2.5",
        "EVALAGENT_JUDGE_MAX_COST_USD": "5",
        "EVALAGENT_MAX_NODE_TASKS": "0",
        "EVALAGENT_WARM": "off",
    }
    settings = read_settings(said)
    assert settings.home == Path("/data/evals")
    assert (settings.judge, settings.judge_cheap) == ("anthropic", "small")
    assert settings.judge_base_url == "http://127.0.0.1:8080"
    assert (settings.judge_temperature, settings.judge_timeout_s) == (0.0, 2.5)
    assert (settings.judge_max_cost_usd, settings.max_node_tasks, settings.warm) == (5.0, 0, False)


def test_a_named_judge_is_made_of_its_own_variables() -> None:
    settings = read_settings(
        {
            "EVALAGENT_JUDGE_MY_BOX_BASE_URL": "http://box:8080",
            "EVALAGENT_JUDGE_MY_BOX_CHEAP": "gemma",
            "EVALAGENT_JUDGE_MY_BOX_KEY_ENV": "BOX_KEY",
        }
    )
    endpoint = settings.judges["my-box"]
    assert (endpoint.base_url, endpoint.cheap, endpoint.strong) == ("http://box:8080", "gemma", None)
    assert (endpoint.form, endpoint.key_env) == ("tool", "BOX_KEY")


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("EVALAGENT_JUDGE_BASE_URL", "localhost"),
        ("EVALAGENT_JUDGE_BASE_URL", "http://me:secret@host"),
        ("EVALAGENT_JUDGE_TIMEOUT_S", "soon"),
        ("EVALAGENT_JUDGE_TIMEOUT_S", "nan"),
        ("EVALAGENT_JUDGE_MAX_CALLS", "-1"),
        ("EVALAGENT_JUDGE_FORM", "xml"),
        ("EVALAGENT_WARM", "perhaps"),
        ("EVALAGENT_MAX_NODE_TASKS", "2.5"),
        ("EVALAGENT_JUDGE_BOX_CHEAP", "m"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(variable: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings({variable: text})
    assert variable.split("_CHEAP")[0] in str(caught.value)


def test_a_variable_that_means_nothing_is_kept_for_doctor_to_show() -> None:
    assert read_settings({"EVALAGENT_JUGDE": "anthropic", "EVALAGENT_RUN": "r1"}).unknown == ("EVALAGENT_JUGDE",)


def test_the_example_file_names_every_setting_with_its_default_and_meaning() -> None:
    text = (ROOT / ".env.example").read_text("utf-8")
    for variable, default, meaning in described():
        assert f"# {meaning}\n#{variable}={default}\n" in text, variable
