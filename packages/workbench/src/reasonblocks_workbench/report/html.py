"""Renders the pages by templates that escape every value; style and script are inside or linked."""

from __future__ import annotations

import gzip
import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reasonblocks.types.outcomes import KNOWN
from reasonblocks.util.text import count_noun

from . import text, view
from ._chart import LANE, LETTERS, LEVEL, MARKS, chart_of, kinds_of, name_of
from .health import health_groups, summary_facts
from .line import RunLine, run_line
from .page import Row, RunPage
from .tally import Tally

if TYPE_CHECKING:
    from jinja2 import Environment, Template

GZIP = 6
"""The level of gzip: 9 takes twice the time for 1 % less."""
TEMPLATES = Path(__file__).parent / "templates"
STYLESHEET, SCRIPT = "report.css", "report.js"
"""The files of a page's style and script, for a server that links them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assets:
    """The places of a page's style and script: URLs, or None to write both into the page.

    A page with both inside has a content security policy in a meta tag that allows nothing else. A server sends its own
    policy as a header.
    """

    stylesheet: str | None = None
    script: str | None = None

    @property
    def linked(self) -> bool:
        return self.stylesheet is not None or self.script is not None

    @property
    def policy(self) -> str:
        """The content security policy of a page with everything inside, "" for a linked one."""
        return "" if self.linked else _policy()


INLINE = Assets()


@dataclass(frozen=True, slots=True, kw_only=True)
class NavLink:
    """A link at the top of a page."""

    name: str
    href: str
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The list of runs: its lines, their counts, and for a server the URL that filters are sent to.

    `packed` are the runs themselves, for a list that opens them by its script. `chosen` are the values of the filters,
    by their names, and "q" and "sort".
    """

    lines: Sequence[RunLine]
    tally: Tally
    title: str = "Runs"
    action: str = ""
    chosen: Mapping[str, str] = field(default_factory=dict)
    packed: Sequence[str] = ()


def run_page(
    page: RunPage,
    *,
    assets: Assets = INLINE,
    nav: Sequence[NavLink] = (),
    limit: int | None = text.CLIP,
) -> str:
    """Return the page of one run. Texts are clipped at `limit` characters; None shows all of them."""
    context = run_context(page, limit=limit)
    return _template("run.html").render(context, assets=assets, nav=nav)


def runs_page(listing: Listing, *, assets: Assets = INLINE, nav: Sequence[NavLink] = ()) -> str:
    """Return the page with the list of runs."""
    return "".join(_runs_page_parts(listing, assets=assets, nav=nav))


def _runs_page_parts(listing: Listing, *, assets: Assets = INLINE, nav: Sequence[NavLink] = ()) -> Iterator[str]:
    """Yield the page with the list of runs in parts, because it may have many packed runs."""
    context = {
        "title": listing.title,
        "lines": listing.lines,
        "facts": summary_facts(listing.tally),
        "health": health_groups(listing.tally),
        "filters": _filters(listing),
        "sorts": _SORTS,
        "sort": listing.chosen.get("sort", ""),
        "query": listing.chosen.get("q", ""),
        "action": listing.action,
        "packed": listing.packed,
        "told_word": view.TOLD_WORDS[_unheard(listing.lines)],
        "has_tokens": any(line.tokens is not None for line in listing.lines),
        "has_seconds": any(line.seconds is not None for line in listing.lines),
    }
    return _template("runs.html").generate(context, assets=assets, nav=nav)


def health_page(tally: Tally, *, assets: Assets = INLINE, nav: Sequence[NavLink] = ()) -> str:
    """Return the page of the counts over many runs."""
    summary = ", ".join(f"{fact.name.lower()} {fact.value}" for fact in summary_facts(tally))
    return _template("health.html").render(health=health_groups(tally), summary=summary, assets=assets, nav=nav)


class OnePage:
    """A page that contains its runs. Add them one after another; then `parts` has the page.

    A single run is a page of its own, without a list.
    """

    def __init__(self, title: str = "Runs", *, limit: int | None = text.CLIP) -> None:
        self.title, self.limit = title, limit
        self.tally = Tally()
        self._lines: list[RunLine] = []
        self._packed: list[str] = []
        self._first: RunPage | None = None

    def add(self, page: RunPage) -> None:
        """Add a run; its page may be dropped afterwards."""
        name = f"run-{len(self._lines)}"
        self._first = None if self._lines else page
        self.tally.add(page)
        self._lines.append(run_line(page, f"#{name}"))
        self._packed.append(_packed(_fragment(page, prefix=f"{name}-", limit=self.limit)))

    def parts(self) -> Iterator[str]:
        """Return an iterator over the page's parts."""
        if self._first is not None:
            return iter([run_page(self._first, limit=self.limit)])
        listing = Listing(lines=self._lines, tally=self.tally, title=self.title, packed=self._packed)
        return _runs_page_parts(listing)


def _packed(fragment: str) -> str:
    """Return the fragment as base64 text of its gzip; equal fragments give equal text."""
    return b64encode(gzip.compress(fragment.encode("utf-8"), GZIP, mtime=0)).decode("ascii")


def _fragment(page: RunPage, *, prefix: str, limit: int | None = text.CLIP) -> str:
    """Return a run's page without its frame; `prefix` begins the ids of its elements."""
    return _template("fragment.html").render(run_context(page, prefix=prefix, limit=limit))


def run_context(
    page: RunPage,
    *,
    prefix: str = "",
    limit: int | None = text.CLIP,
    rows: Sequence[Row] | None = None,
    page_of: Callable[[int], str] = lambda number: "",
    text_href: Callable[[Row | None, str], str] = lambda row, name: "",
) -> dict[str, Any]:
    """Return the values of a run's templates, for `environment`.

    `rows` are the rows of the table, all by default; the chart and the texts are those of the whole run. `page_of`
    returns the address of the page with a call, "" for the same page. `text_href` returns the address of a whole text,
    by its row and its name as in `texts_of`, "" for none.
    """
    chart, verdicts = chart_of(page), page.verdicts.values()
    return {
        "page": page,
        "rows": page.rows if rows is None else rows,
        "page_of": page_of,
        "text_href": text_href,
        "prefix": prefix,
        "limit": limit,
        "chart": chart,
        "lane": LANE,
        "level": LEVEL,
        "legend": view.legend(page),
        "about": view.about(page),
        "has_task": bool(page.task) and not view.is_task(page),
        "unjudged": view.unjudged(page),
        "mode": view.mode(page),
        "texts": view.cards(page),
        "rules": view.standing(page),
        "judged": len(verdicts),
        "recovered": sum(verdict.recovered for verdict in verdicts),
        "told_word": view.TOLD_WORDS[page.unheard],
        "has_models": len({row.entry.model_id for row in page.rows if row.entry.model_id}) > 1,
        "has_tokens": any(row.entry.tokens is not None for row in page.rows),
        "has_times": any(row.entry.latency_ms is not None for row in page.rows),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filter:
    name: str
    label: str
    options: tuple[_Option, ...]
    chosen: str


_SORTS = tuple(
    _Option(value=value, label=label)
    for value, label in (
        ("", "order"), ("told", "most texts"), ("state", "hardest state"), ("difficulty", "highest difficulty"),
        ("steps", "most steps"), ("tokens", "most tokens"), ("seconds", "longest"), ("started", "newest"),
    )
)  # fmt: skip
_OUTCOMES = {kind: kind for kind in KNOWN} | {**view.UNENDED}
_TOLD = {"monitor": "by a monitor", "lesson": "a lesson", "operator": "by an operator", "budget": "of its budget",
         "withheld": "withheld", "stop": "stopped", "doubt": "ends in doubt"}  # fmt: skip


def _unheard(lines: Sequence[RunLine]) -> bool | None:
    """Return True if no agent has seen a text, False if all have, None if it depends on the run."""
    kinds = {line.unheard for line in lines}
    return kinds.pop() if len(kinds) == 1 else None if kinds else False


def _filters(listing: Listing) -> list[_Filter]:
    lines = listing.lines
    agents = {line.agent: line.agent for line in lines if line.agent}
    states = [state for state in LETTERS if any(state in line.states for line in lines)]
    outcomes = {line.outcome_kind for line in lines}
    failures = sorted({name for line in lines for name in line.failures})
    kinds = {kind for line in lines for kind in line.kinds}
    rows = (
        ("agent", "agent", {name: name for name in sorted(agents)}),
        ("state", "reached", {name: name for name in states}),
        ("outcome", "outcome", {kind: name for kind, name in _OUTCOMES.items() if kind in outcomes}),
        ("failure", "failure", {name: name for name in failures}),
        ("told", view.TOLD_WORDS[_unheard(lines)], {kind: name for kind, name in _TOLD.items() if kind in kinds}),
    )
    return [
        _Filter(
            name=name,
            label=label,
            chosen=listing.chosen.get(name, ""),
            options=tuple(_Option(value=value, label=shown) for value, shown in options.items()),
        )
        for name, label, options in rows
        if len(options) > (0 if name == "told" else 1) or listing.action
    ]


@cache
def environment(*folders: Path) -> Environment:
    """Return the environment of the pages: it escapes every value and shows hidden characters.

    Templates of other folders may extend those of this package.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # slow to import, and needed by pages only

    found = Environment(
        autoescape=True,
        loader=FileSystemLoader([*folders, TEMPLATES]),
        undefined=StrictUndefined,
        finalize=text.finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    found.filters["plain"] = text.plain
    found.globals |= {
        "letters": LETTERS, "marks": MARKS, "missing": text.MISSING, "most_calls": view.MOST_CALLS, "plain": text.plain,
        "preview": text.preview, "sentence": text.sentence, "parts": text.parts, "clipped": text.clip_text,
        "number": text.number, "count": text.count, "dollars": text.dollars, "counted": count_noun,
        "milliseconds": text.milliseconds, "duration": text.duration, "call_preview": text.call_preview,
        "arguments": view.arguments, "facts_of": view.facts_of, "gate_word": view.gate_word, "kinds_of": kinds_of,
        "name_of": name_of, "outcome_word": view.outcome_word, "told_words": view.TOLD_WORDS, "heading": view.heading,
        "told_count": view.told_count,
    }  # fmt: skip
    return found


def _template(name: str) -> Template:
    return environment().get_template(name)


@cache
def _policy() -> str:
    script, style = (_hash((TEMPLATES / name).read_text(encoding="utf-8")) for name in (SCRIPT, STYLESHEET))
    return f"default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'"


def _hash(source: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(source.encode()).digest()).decode()}"
