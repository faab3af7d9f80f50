"""Describes the counts over many runs in the words and shares of a list's summary and of the health page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from reasonblocks.util.text import count_noun

from ._chart import LETTERS
from .tally import Tally, percent, ranked
from .text import MISSING
from .view import UNENDED, Fact

OUTCOMES = (("success", "succeeded"), ("failure", "failed"), ("stopped", "stopped"),
            ("open", UNENDED["open"]), ("unknown", UNENDED["unknown"]))  # fmt: skip
RECOVERED = "Recovered, by failure type"
UNTOLD = "Recovered untold, by failure type"
"""The title of the group that only observed and replayed runs have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One row of counts; `share` is the length of its bar, 0 to 1, None for a row without a bar."""

    name: str
    value: str
    share: float | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Counts that belong together."""

    title: str
    rows: tuple[Bar, ...]
    note: str = ""


def summary_facts(tally: Tally) -> list[Fact]:
    """Return the headline of a list of runs."""
    outcomes = ", ".join(f"{tally.outcomes[kind]:,} {word}" for kind, word in OUTCOMES if tally.outcomes[kind])
    hard = " and ".join(f"{tally.reached[name]:,} {name}" for name in ("SLOW", "SKIP") if tally.reached[name])
    facts = [Fact("Runs", f"{tally.runs:,}", outcomes), Fact("Steps", f"{tally.recorded:,}")]
    texts = sum(tally.texts.values())
    in_runs = f"in {count_noun(tally.flagged, 'run')}"
    if texts > tally.unheard or not texts:
        facts.append(Fact("Told", count_noun(texts - tally.unheard, "text"), "" if tally.unheard else in_runs))
        facts.append(_share("Recovered", tally.recovered, tally.judged))
    if tally.unheard:
        facts.append(
            Fact("Would be told", count_noun(tally.unheard, "text"), in_runs if texts == tally.unheard else "")
        )
        facts.append(_share("Recovered untold", tally.unheard_recovered, tally.unheard_judged))
    facts.append(Fact("Hard", hard or "none", "runs" if hard else ""))
    if tally.doubted:
        facts.append(Fact("Ends in doubt", count_noun(tally.doubted, "run")))
    for name, number in (
        ("Stopped", tally.stopped - tally.unheard_stopped),
        ("Would be stopped", tally.unheard_stopped),
    ):
        facts += [Fact(name, count_noun(number, "run"))] if number else []
    unjudged = tally.unjudged
    if unjudged:
        facts.append(Fact("Not evaluated", count_noun(unjudged, "step"), "nothing was judged there"))
    return facts


def _share(name: str, recovered: Counter[str], judged: Counter[str]) -> Fact:
    whole = sum(judged.values())
    return Fact(name, percent(sum(recovered.values()), whole), f"of {whole:,} judged" if whole else "")


def health_groups(tally: Tally) -> list[Group]:
    """Return all counts, group by group."""
    origins = sum(tally.texts.values())
    rows: tuple[tuple[str, str, Iterable[Bar]], ...] = (
        ("Steps by state", "", _states(tally)),
        ("Monitors fired", "runs in which a monitor fired", _of(tally.monitors, tally.runs)),
        (_texts_title(tally), "by their origin", _of(tally.texts, origins)),
        (RECOVERED, "judged three steps after a text", _recovered(tally.recovered, tally.judged)),
        (
            UNTOLD,
            "judged three steps after a text that the agent has not seen",
            _recovered(tally.unheard_recovered, tally.unheard_judged),
        ),
        ("Ends in doubt", "runs, by the monitor that raised the doubt", _of(tally.doubts, tally.runs)),
        ("Faults and drops", "", _faults(tally)),
    )
    groups = [Group(title=title, note=note, rows=tuple(bars)) for title, note, bars in rows]
    left_out = {UNTOLD, RECOVERED if tally.unheard else ""}
    return [group for group in groups if group.rows or group.title not in left_out]


def _texts_title(tally: Tally) -> str:
    told = sum(tally.texts.values()) - tally.unheard
    if not tally.unheard:
        return "Texts told"
    return "Texts told, or that would be told" if told else "Texts that would be told"


def _states(tally: Tally) -> Iterable[Bar]:
    for name in LETTERS:
        if tally.states[name]:
            part = tally.states[name] / max(1, tally.steps)
            yield Bar(name=name, value=f"{tally.states[name]:,}", share=part, kind=name)


def _of(counts: Counter[str], whole: int) -> Iterable[Bar]:
    for name, number in ranked(counts):
        yield Bar(name=name, value=f"{number:,}", share=min(1.0, number / max(1, whole)))


def _recovered(recovered: Counter[str], judged: Counter[str]) -> Iterable[Bar]:
    for name, whole in ranked(judged):
        part = recovered[name] / whole
        yield Bar(name=name, value=f"{recovered[name]:,} of {whole:,}, {100 * part:.0f} %", share=part)


def _faults(tally: Tally) -> Iterable[Bar]:
    rows = (
        ("steps that were not steered after a fault", tally.faults),
        ("calls without an evaluation or a backend's answer", tally.unavailable),
        ("calls that failed", tally.errors),
        ("texts that were omitted", tally.dropped),
    )
    for name, number in rows:
        yield Bar(name=name, value=f"{number:,}" if number else MISSING)
