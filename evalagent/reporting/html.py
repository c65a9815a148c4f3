"""The report as one HTML file that needs no network and runs no script."""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from evalagent.reporting import wording
from evalagent.reporting.drawing import svg
from evalagent.reporting.quality import decimals, in_words
from evalagent.reporting.report import Drawing, Report

_VIA = (
    ("call", "asked for by"),
    ("data", "uses a value of"),
    ("link", "linked by the trace"),
    ("handoff", "handed over by"),
    ("retry", "tries again"),
    ("order", "only comes after"),
)
_STEP = re.compile(r"\b[Ss]tep (\d{1,9})\b", re.ASCII)
_WORDS = {"always passed": "pass", "passed": "pass", "always failed": "fail", "failed": "fail", "intermittent": "mixed"}


def render(report: Report) -> str:
    """The whole page. Every foreign text is escaped by the template; the drawings escape their own."""
    style = _style()
    # The page's one style sheet is named by its hash, so that no style or script that slipped in would be applied.
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    page = _environment().get_template("report.html.j2")
    links = {d.line.anchor: {step.number: step.anchor for step in d.steps} for d in (*report.failed, *report.others)}
    safe = Markup(style)  # noqa: S704  (a file of this package)
    told = page.render(
        r=report,
        style=safe,
        policy=policy,
        state_class=_WORDS,
        links=links,
        brief={run.name: run.brief for run in report.runs},
        held_out=wording.HELD_OUT,
    )
    return wording.printable(told)


@cache
def _style() -> str:
    text = resources.files("evalagent.reporting").joinpath("templates/report.css").read_text("utf-8")
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("evalagent.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(
        percent=wording.percent,
        interval=wording.span,
        ends=wording.ends,
        number=wording.number,
        brief=wording.brief,
        shortened=wording.shortened,
        duration=wording.seconds,
        decimals=decimals,
        in_words=in_words,
        ruling=lambda verdict: wording.RULINGS[verdict],
        counted=wording.counted,
        flat=_flat,
        linked=_linked,
        vias=lambda drawings: [via for via in _VIA if any(a.via == via[0] for d in drawings for a in d.arrows)],
    )
    made.globals["svg"] = _svg
    return made


def _svg(drawing: Drawing, name: str) -> Markup:
    return Markup(svg(drawing, name))  # noqa: S704  (`svg` escapes all that is foreign)


def _linked(text: str, steps: Mapping[int, str] | None) -> Markup:
    """A text, escaped, with each `step N` a link to that step where the page lists it."""
    parts, end = [], 0
    for found in _STEP.finditer(text if steps else ""):
        anchor = steps.get(int(found[1])) if steps else None
        if anchor is not None:
            parts += [escape(text[end : found.start()]), f'<a href="#{escape(anchor)}">{escape(found[0])}</a>']
            end = found.end()
    return Markup("".join((*parts, escape(text[end:]))))  # noqa: S704  (every part is escaped)


def _flat(part: object) -> str:
    """A part of the receipt in words."""
    if isinstance(part, dict):
        return ", ".join(f"{name}: {_flat(said)}" for name, said in part.items()) or "none"
    if isinstance(part, list | tuple):
        return wording.value(list(part), 600) if part else "none"
    return f"{part:,}" if isinstance(part, int) and not isinstance(part, bool) else wording.bounded(str(part), 200)
