"""A run folder's rows, read back as values."""

from collections.abc import Mapping
from pathlib import Path

import orjson

from evalagent.adapters.files import read_lines, write_json
from evalagent.model import (
    Attribution,
    ExpectedChange,
    Finding,
    Outcome,
    Recovered,
    RootCause,
    Verdict,
    WorldChange,
)
from evalagent.records import JudgeUse


def findings(folder: Path) -> list[Finding]:
    return [Finding(**row) for row in read_lines(folder / "findings.jsonl")]


def verdicts(folder: Path) -> list[Verdict]:
    return [Verdict(**row) for row in read_lines(folder / "verdicts.jsonl")]


def outcomes(folder: Path) -> list[Outcome]:
    return [
        Outcome(
            row["case_id"],
            row["trial"],
            row["verdict"],
            tuple(ExpectedChange(**e) for e in row["expected"]),
            tuple(WorldChange(**c) for c in row["unexpected"]),
            tuple(WorldChange(**c) for c in row["masked"]),
            row["reason"],
        )
        for row in read_lines(folder / "outcomes.jsonl")
    ]


def attributions(folder: Path) -> list[Attribution]:
    return [
        Attribution(
            row["trace_id"],
            row["verdict"],
            row["first_failing_step"],
            tuple(RootCause(**{**cause, "path": tuple(cause["path"])}) for cause in row["root_causes"]),
            tuple(Recovered(**r) for r in row["recovered"]),
            row["ambiguous"],
        )
        for row in read_lines(folder / "attributions.jsonl")
    ]


def save_judge_use(folder: Path, use: JudgeUse, versions: Mapping[str, str]) -> None:
    write_json(
        folder / "judge.json", {name: getattr(use, name) for name in JudgeUse.__slots__} | {"versions": dict(versions)}
    )


def judge_versions(folder: Path) -> dict[str, str]:
    """Versions of prompt and rubrics that a model was asked with; empty where none was."""
    path = folder / "judge.json"
    return dict(orjson.loads(path.read_bytes())["versions"]) if path.exists() else {}


def judge_use(folder: Path, judge: str) -> JudgeUse:
    """What judging took; of a run that asked no model, nothing."""
    path = folder / "judge.json"
    if not path.exists():
        return JudgeUse(judge)
    told = orjson.loads(path.read_bytes())
    return JudgeUse(**{**{k: v for k, v in told.items() if k != "versions"}, "models": tuple(told["models"])})
