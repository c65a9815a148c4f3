"""The command line. Every command imports what it needs when it is called, so that `--help` answers at once."""

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer

from evalagent import __version__
from evalagent.errors import EvalAgentError, UsageError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="""Does the agent work, which step broke it, and what could not be judged?

**Start here**

* `evalagent evaluate traces/ --out out/` judges OpenTelemetry traces that you have.

* `evalagent run suite.yaml` runs your agent several times per case and grades what it did to the world.

* `evalagent doctor` says what this machine has and how to get the rest.

**Exit codes**: 0 judged and passed · 1 judged, and the agent failed · 2 wrong use, or nothing could be read ·
3 could not be judged · 4 the evaluation's own budget ran out · 70 a fault of ours.
""",
)
store_app = typer.Typer(no_args_is_help=True, help="The DuckDB warehouse over all runs of a home.")
app.add_typer(store_app, name="store")

JUDGES = "rules (default without a key), anthropic, bedrock, or none; auto takes anthropic where ANTHROPIC_API_KEY is set"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evalagent {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Say the version and stop.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
def evaluate(
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Trace files or folders; `-` is standard input, .gz is read too.")],
    out: Annotated[Path, typer.Option(help="Folder for the output files.")],
    suite: Annotated[Path | None, typer.Option(help="A suite.yaml: its cases, checks, secrets and prices apply.")] = None,
    judge: Annotated[str, typer.Option(help=JUDGES)] = "auto",
    format: Annotated[str, typer.Option(help="auto, otlp, jaeger, tempo, openinference or messages")] = "auto",
    allow_rejected: Annotated[bool, typer.Option(help="Lines that cannot be read do not make the exit code 3.")] = False,
) -> None:
    """Judge traces that you have: OTLP, Jaeger, Tempo, SDK dumps, or plain message lists.

    Writes steps, findings, verdicts, attributions, a receipt and a report under --out. Example:

        evalagent evaluate traces.jsonl --out out && open out/report.html
    """
    from evalagent.adapters import settings, trace_files
    from evalagent.reporting import text

    _one_of("--format", format, ("auto", "otlp", "jaeger", "tempo", "openinference", "messages"))
    record = trace_files.evaluate(
        paths, out, settings.load(), suite_file=suite, judge=judge, format=format, allow_rejected=allow_rejected
    )
    typer.echo(text.render(record))
    typer.echo(f"report: {out / 'report.html'}")
    raise typer.Exit(record.exit_code)


@app.command()
def run(
    suite: Annotated[Path, typer.Argument(help="A suite.yaml, or the folder that holds it.")],
    trials: Annotated[int | None, typer.Option(min=1, help="Runs of each case; the suite's number if not given.")] = None,
    judge: Annotated[str, typer.Option(help=JUDGES)] = "auto",
    sandbox: Annotated[str, typer.Option(help="process (limits of the operating system) or docker")] = "process",
    only: Annotated[list[str] | None, typer.Option(help="Only this case; may be given several times.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show Prefect's log.")] = False,
) -> None:
    """Run the agent of a suite, judge every step, find what broke, report.

    The run is a Prefect flow: against the server of PREFECT_API_URL if that is set, else against one that lives as long
    as the command. A run that was killed is resumed by giving the same command again.
    """
    from evalagent.adapters import flow_runs, runs, stored_records
    from evalagent.reporting import text

    _one_of("--sandbox", sandbox, ("process", "docker"))
    path = flow_runs.run(suite, trials=trials, judge=judge, sandbox=sandbox, only=tuple(only or ()), verbose=verbose)
    record = stored_records.record(path)
    typer.echo(text.render(record))
    typer.echo(f"report: {path / 'report.html'}")
    typer.echo(f"all runs: {runs.home_of(path) / 'warehouse.duckdb'} (DuckDB)")
    if not os.environ.get("PREFECT_API_URL"):
        typer.echo("Prefect UI: `make server` in the checkout, then http://127.0.0.1:4200; this run is listed there")
    raise typer.Exit(record.exit_code)
