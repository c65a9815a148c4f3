"""docs/store.md names every table and column of the stores, and its queries run."""

import json
import re
from pathlib import Path

import pytest

from evalagent.adapters.loading import load_files
from evalagent.adapters.store import Store

ROOT = Path(__file__).parents[1]
DOC = (ROOT / "docs" / "store.md").read_text("utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", DOC, re.DOTALL)
SCHEMAS = {"traces.": "trace_schema.sql", "": "schema.sql"}


def _span(span_id: str, parent: str, name: str, status: int, **attributes: str) -> dict:
    told = [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in attributes.items()]
    return {
        "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
        "spanId": span_id,
        "parentSpanId": parent,
        "name": name,
        "startTimeUnixNano": "1000000000",
        "endTimeUnixNano": "2000000000",
        "status": {"code": status, "message": "no such copy" if status == 2 else ""},
        "attributes": told,
    }


def _asked(home: Path, sql: str) -> list[dict]:
    columns, rows = Store(home).query(sql)
    return [dict(zip(columns, row, strict=True)) for row in rows]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    talk = {"gen_ai__conversation__id": "talk-7"}
    spans = [
        _span("00f067aa0ba902b7", "", "invoke_agent desk", 0, gen_ai__operation__name="invoke_agent", **talk),
        _span("00f067aa0ba902b8", "00f067aa0ba902b7", "chat m", 0, gen_ai__operation__name="chat", **talk),
        _span(
            "00f067aa0ba902b9",
            "00f067aa0ba902b7",
            "execute_tool find_copy",
            2,
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name="find_copy",
            **talk,
        ),
    ]
    file = folder / "traces.jsonl"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "desk"}, "spans": spans}]}]}))
    assert load_files([str(file)], folder / "home").exit_code == 0
    return folder / "home"


def test_there_are_five_queries_and_each_finds_something(home) -> None:
    assert len(QUERIES) == 5
    for sql in QUERIES:
        assert _asked(home, sql), sql


def test_the_tool_that_fails_most_comes_first(home) -> None:
    [first, *_] = _asked(home, QUERIES[0])
    assert (first["name"], first["errors"]) == ("find_copy", 1)


def test_all_tables_can_be_listed(home) -> None:
    assert {"spans", "steps", "edges"} <= {row["name"] for row in _asked(home, "SHOW ALL TABLES")}


@pytest.mark.parametrize("prefix", SCHEMAS)
def test_every_table_and_column_is_named(prefix) -> None:
    schema = (ROOT / "evalagent" / "adapters" / SCHEMAS[prefix]).read_text("utf-8")
    part = DOC.split("## The trace store")[1].split("## The warehouse")[0 if prefix else 1]
    rows = re.sub(r"\n\| \|", " ", part)
    for table, body in re.findall(r"CREATE TABLE IF NOT EXISTS (\w+) \((.*?)\);\n", schema, re.DOTALL):
        [row] = [row for row in rows.splitlines() if row.startswith(f"| `{prefix}{table}` ")]
        if "as in" in row:
            continue
        body = re.sub(r"--.*|STRUCT\(.*?\)|PRIMARY KEY ?\(.*?\)", "", body)
        columns = [one.split()[0] for one in body.split(",") if one.split()]
        assert set(columns) <= set(re.findall(r"\w+", row)), (table, columns)
