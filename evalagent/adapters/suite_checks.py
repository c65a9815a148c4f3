"""What can be known to be wrong with a suite before an agent is started."""

from collections.abc import Sequence
from pathlib import Path

from evalagent.adapters import folders, judges, worlds
from evalagent.adapters.files import load_prices, text_of
from evalagent.authoring import instrumenting
from evalagent.checks import expecting
from evalagent.checks import settings as check_settings
from evalagent.errors import UsageError
from evalagent.suites import Case, Suite
from evalagent.suites.documents import read_yaml


def check_suite(suite: Suite, cases: Sequence[Case], suite_file: Path) -> None:
    """UsageError for the first thing that would otherwise be found, or worse not be found, when trials have run:
    checks and paths that cannot be read, rubrics, prices, tools, and expected changes of tables
    that the seeded world does not have."""
    where = str(suite_file)
    folder = suite_file.parent
    check_settings.read_settings(suite.checks)
    load_prices(suite, folder)
    _check_rubrics(folder / suite.rubrics if suite.rubrics else None)
    instrumenting.environment(suite.agent, endpoint="", resource={}, case_id="", trial=0, attempt="")
    for case in cases:
        if case.expected.path is not None:
            expecting.read_path(case.expected.path)
    _check_tables(suite, cases, folder, where)


def _check_rubrics(folder: Path | None) -> None:
    if folder and folder.is_dir():
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.suffix.lower() in (".yaml", ".yml"):
                read_yaml(text_of(path), str(path))
    judges.read_rubrics(folder)


def _check_tables(suite: Suite, cases: Sequence[Case], folder: Path, where: str) -> None:
    if not suite.world:
        named = next((case for case in cases if case.expected.changes), None)
        if named is not None:
            raise UsageError(
                f"case {named.id!r} expects changes, but the suite has no `world` to see them in",
                file=str(folder / suite.cases),
                key="expected.changes",
            )
        return
    with folders.scratch("evalagent-world-") as work_dir:
        worlds.prepare(suite.world, folder, work_dir)
        try:
            tables = worlds.snapshot(suite.world, work_dir)
        except worlds.WorldDamaged as error:
            raise UsageError(f"the seeded world cannot be read: {error}", file=where, key="world") from error
    for case in cases:
        for n, change in enumerate(case.expected.changes or ()):
            if change.table not in tables:
                raise UsageError(
                    f"case {case.id!r}: no table {change.table!r} in the seeded world; there are {', '.join(tables)}",
                    file=str(folder / suite.cases),
                    key=f"expected.changes.{n}.table",
                )
