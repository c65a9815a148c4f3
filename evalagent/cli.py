"""The command line. Every command imports what it needs when it is called, so that `--help` answers at once."""

import io
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from evalagent import __version__
from evalagent.errors import EvalAgentError, UsageError
from evalagent.traces.formats import FORMATS

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="""Does the agent work, which step broke it, and what could not be judged?

**Start here**

* `evalagent evaluate traces/ --out out/` judges OpenTelemetry traces that you have.

* `evalagent receive` takes what your agent exports over OTLP/HTTP.

* `evalagent run suite.yaml` runs your agent several times per case and grades what it did to the world.

* `evalagent doctor` says what this machine has and how to get the rest.

**Exit codes**: 0 nothing failed (how much was judged is said beside it) · 1 judged, and the agent failed ·
2 wrong use, or nothing could be read · 3 could not be judged · 4 the evaluation's own budget ran out ·
70 a fault of ours.
""",
)
store_app = typer.Typer(no_args_is_help=True, help="The DuckDB stores of a home: all runs, and loaded traces.")
app.add_typer(store_app, name="store")

JUDGES = (
    "rules (default without a key), anthropic, bedrock, or none; auto takes anthropic where ANTHROPIC_API_KEY is set"
)


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
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH…",
            help="Trace files or folders, or a traces.duckdb; `-` is standard input, .gz and .zst are read too.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the output files.")],
    suite: Annotated[
        Path | None, typer.Option(help="A suite.yaml: its cases, checks, secrets and prices apply.")
    ] = None,
    judge: Annotated[str, typer.Option(help=JUDGES)] = "auto",
    format: Annotated[str, typer.Option(help=", ".join(FORMATS))] = "auto",
    allow_rejected: Annotated[
        bool, typer.Option(help="Lines that cannot be read do not make the exit code 3.")
    ] = False,
    floor: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of judged steps below which the exit code is 3; else the suite's."),
    ] = None,
) -> None:
    """Judge traces that you have: OpenTelemetry, the exports of ten backends, or plain message lists (docs/traces.md).

    Writes steps, findings, verdicts, attributions, a receipt and a report under --out. Example:

        evalagent evaluate traces.jsonl --out out && open out/report.html
    """
    from evalagent.adapters import settings, trace_files
    from evalagent.reporting import text

    _one_of("--format", format, tuple(FORMATS))
    record = trace_files.evaluate(
        paths,
        out,
        settings.load(),
        suite_file=suite,
        judge=judge,
        format=format,
        allow_rejected=allow_rejected,
        floor=floor,
    )
    _say(text.render(record))
    passed_over = record.receipt.get("passed_over", ())
    if passed_over:
        _say(f"passed over: {len(passed_over)} files whose names say that they are no traces (receipt.json names them)")
    _say(f"report: {out / 'report.html'}")
    raise typer.Exit(record.exit_code)


@app.command()
def run(
    suite: Annotated[Path, typer.Argument(help="A suite.yaml, or the folder that holds it.")],
    trials: Annotated[
        int | None, typer.Option(min=1, help="Runs of each case; the suite's number if not given.")
    ] = None,
    judge: Annotated[str, typer.Option(help=JUDGES)] = "auto",
    sandbox: Annotated[str, typer.Option(help="process (limits of the operating system) or docker")] = "process",
    only: Annotated[list[str] | None, typer.Option(help="Only this case; may be given several times.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show Prefect's log.")] = False,
) -> None:
    """Run the agent of a suite, judge every step, find what broke, report.

    The run is a Prefect flow: against the server of PREFECT_API_URL if that is set, else against one that lives as long
    as the command. A run that was killed is resumed by giving the same command again.
    """
    from evalagent.adapters import flow_runs, pipeline, runs
    from evalagent.reporting import text

    _one_of("--sandbox", sandbox, ("process", "docker"))
    path, note = flow_runs.run(
        suite, trials=trials, judge=judge, sandbox=sandbox, only=tuple(only or ()), verbose=verbose
    )
    record = pipeline.record_of(runs.plan_of(path))
    _say(text.render(record))
    _say(f"report: {path / 'report.html'}")
    _say(note or f"all runs: {path.parent.parent / 'warehouse.duckdb'} (DuckDB)")
    if not os.environ.get("PREFECT_API_URL"):
        _say("Prefect UI: `make server` in the checkout, then http://127.0.0.1:4200; this run is listed there")
    raise typer.Exit(record.exit_code)


HOME = Annotated[
    Path | None,
    typer.Option(help="Where runs live, mostly the .evalagent beside the suite; EVALAGENT_HOME, else .evalagent here."),
]


@app.command()
def receive(
    host: Annotated[str, typer.Option(help="Address to listen on; there is no authentication.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 4318,
    suite: Annotated[Path | None, typer.Option(help="A suite.yaml: its secrets and prices apply.")] = None,
    home: HOME = None,
    raw: Annotated[
        bool, typer.Option("--raw/--no-raw", help="Keep the requests as received, secrets and all.")
    ] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between loads into the store.")] = 2.0,
) -> None:
    """Receive OTLP/HTTP (JSON or protobuf, gzip) from any exporter into the trace store, until it is interrupted.

    Point an exporter at it with `OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318`; judge what came with
    `evalagent evaluate .evalagent/traces.duckdb --out out`, and ask about it with `evalagent store query`.
    """
    import signal
    import threading

    from evalagent.adapters import loading, reception

    landing = reception.Landing(_home(home), *loading.said_by(suite), raw)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    landed = reception.receive(landing, host, port, every_s=every, stop=stop, say=_say)
    _say(landed.text)
    raise typer.Exit(3 if landed.rejected or landed.waiting else 0)


RUN = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, its folder, an --out folder, or `latest`.")]


@app.command()
def report(
    named: RUN,
    format: Annotated[str, typer.Option(help="html, md, json or junit")] = "md",
    out: Annotated[Path | None, typer.Option(help="File to write; standard output if not given.")] = None,
    home: HOME = None,
) -> None:
    """Print a run's report, or write it to a file."""
    from evalagent.adapters import runs
    from evalagent.adapters.files import bytes_of, write_bytes
    from evalagent.adapters.outputs import RENDERERS

    _one_of("--format", format, tuple(RENDERERS))
    folder = runs.find_run(named, _home(home))
    if not (folder / RENDERERS[format][0]).exists():
        raise UsageError(
            "has no report: the run was not finished; `evalagent run` again goes on with it", file=str(folder)
        )
    data = bytes_of(folder / RENDERERS[format][0])
    if out is None:
        sys.stdout.buffer.write(data)
    else:
        write_bytes(out, data)
        typer.echo(out)


@app.command()
def compare(earlier: RUN, later: RUN, home: HOME = None) -> None:
    """Two runs of a suite, case by case: what changed, with an interval.

    Exit 0 if nothing speaks for a loss, 1 if the later run is worse beyond chance, 3 if it fell by more than the suite
    allows but too few runs were made to tell that from chance.
    """
    from evalagent.adapters import comparing

    result = comparing.compare(earlier, later, _home(home))
    _say(result.text)
    raise typer.Exit({"worse": 1, "undecided": 3, "not worse": 0}[result.comparison.ruling])


@app.command()
def doctor() -> None:
    """What this machine has (Docker, collector, keys, Prefect, disk), and how to get the rest. Exit 0 always."""
    from rich.console import Console
    from rich.table import Table

    from evalagent.adapters import machine

    table = Table(box=None, pad_edge=False)
    for column in ("", "what", "found", "how to get it"):
        table.add_column(column, overflow="fold")
    for capability in machine.inspect():
        mark = "yes" if capability.available else "no"
        table.add_row(mark, capability.name, capability.detail, "" if capability.available else capability.how_to_get)
    Console(highlight=False).print(table)


@store_app.command("rebuild")
def store_rebuild(
    home: HOME = None,
    suite: Annotated[Path | None, typer.Option(help="A suite.yaml: its prices apply to the traces.")] = None,
) -> None:
    """Make the warehouse anew from the run folders, and the steps of the trace store from its spans.

    So that what was loaded long ago is understood as this version understands it.
    """
    from evalagent.adapters.store import Store, traces_database

    where = _home(home)
    for name, count in Store(where).rebuild(where).items():
        typer.echo(f"{name}: {count} rows")
    if traces_database(where).path.exists():
        from evalagent.adapters import loading

        typer.echo(loading.rebuild_all(where, suite))


@store_app.command("load")
def store_load(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH…", help="Trace files or folders; `-` is standard input, .gz and .zst are read too."
        ),
    ],
    format: Annotated[str, typer.Option(help=", ".join(FORMATS))] = "auto",
    suite: Annotated[Path | None, typer.Option(help="A suite.yaml: its secrets and prices apply.")] = None,
    home: HOME = None,
    raw: Annotated[bool, typer.Option("--raw/--no-raw", help="Keep the bytes as received, secrets and all.")] = False,
    allow_rejected: Annotated[
        bool, typer.Option(help="Lines that cannot be read do not make the exit code 3.")
    ] = False,
) -> None:
    """Load traces of any size into the trace store, and build their steps and edges.

    The same file again changes nothing, a span that comes again is counted, and a late one has its trace built anew.
    Ask with `evalagent store query "SELECT kind, count(*) FROM traces.steps GROUP BY kind"`.
    """
    from evalagent.adapters import loading

    _one_of("--format", format, tuple(FORMATS))
    loaded = loading.load_files(
        paths, _home(home), format=format, suite_file=suite, raw=raw, allow_rejected=allow_rejected
    )
    _say(loaded.text)
    raise typer.Exit(loaded.exit_code)


@store_app.command("query")
def store_query(
    sql: Annotated[str, typer.Argument(help="A reading SQL query.")],
    home: HOME = None,
    format: Annotated[str, typer.Option(help="table, csv or jsonl")] = "table",
) -> None:
    """Ask the warehouse: tables runs, trials, spans, steps, edges, findings, verdicts, attributions, outcomes, and the
    view failing_steps; and the trace store: traces.traces, traces.spans, traces.steps, traces.edges and more."""
    from evalagent.adapters import tables
    from evalagent.adapters.store import Store

    _one_of("--format", format, tuple(tables.WRITERS))
    columns, found = Store(_home(home)).query(sql)
    tables.WRITERS[format](columns, found)


def _say(text: str) -> None:
    """On standard output, if anybody still reads there: who stopped reading does not change how the command ends."""
    try:
        print(text, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _home(given: Path | None) -> Path:
    from evalagent.adapters import settings

    configured = given or settings.load().home
    return Path(configured).expanduser().resolve() if configured else Path.cwd() / ".evalagent"


def _one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{value!r} is not one of {', '.join(known)}", key=option)


def main() -> None:
    """The program: errors of ours become one line and their exit code; anything else is a fault of ours, 70."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(standalone_mode=True)
    except EvalAgentError as error:
        from evalagent.reporting.text import plain

        print(f"evalagent: {plain(' '.join(str(error).split()))}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - the last line of defence: what is not foreseen is ours
        sys.exit(_our_fault(error))


def _our_fault(error: BaseException) -> int:
    """Write what happened to a file that the user can send; 70."""
    import tempfile

    told = f"evalagent {__version__}, Python {sys.version}\n\n{''.join(traceback.format_exception(error))}"
    typer.echo(f"evalagent: a fault of ours, not of your agent: {type(error).__name__}: {error}", err=True)
    try:
        with tempfile.NamedTemporaryFile("w", prefix="evalagent-fault-", suffix=".txt", delete=False) as file:
            file.write(told)
        typer.echo(f"evalagent: what happened is in {file.name}; please send it with what you called", err=True)
    except OSError:  # a full disk may be what happened
        typer.echo(told, err=True)
    return 70
