"""Shows counts of the runs of the last days."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from starlette.responses import Response

from reasonblocks_workbench.report.health import Bar, Group
from reasonblocks_workbench.report.view import Fact

from ..values import Body, KeyRow
from ._pages import render
from ._visit import Visit

DAY = 86_400.0
SPANS: Mapping[str, tuple[str, float]] = {
    "1": ("24 hours", DAY),
    "7": ("7 days", 7 * DAY),
    "30": ("30 days", 30 * DAY),
    "all": ("all kept runs", math.inf),
}
USUAL = "7"
STATES = ("INIT", "FAST", "NORMAL", "SLOW", "SKIP", "END")
OUTCOMES = {"live": "live", "success": "succeeded", "failure": "failed", "stopped": "stopped", "unknown": "unknown"}


def health(visit: Visit) -> Response:
    """Show counts of the runs that started within a number of days."""
    span = visit.asked("days") if visit.asked("days") in SPANS else USUAL
    since = max(0.0, visit.now - SPANS[span][1])
    counts = visit.server.storage.runs.health(visit.org, since=since, project_id=visit.key.project_id)
    return render(
        visit,
        "counts.html",
        "Health",
        spans=[(name, words, name == span) for name, (words, _) in SPANS.items()],
        runs=counts["runs"],
        later=counts["since"] if counts["since"] > since else None,
        facts=facts_of(counts),
        health=[*_groups(counts), _refused_keys(visit.server.storage.keys.list(visit.org), since)],
    )


def _refused_keys(keys: Iterable[KeyRow], since: float) -> Group:
    """Return the number of keys with refused requests: the key had expired or was revoked, or the secret was wrong."""
    number = sum(key.refused is not None and key.refused >= since for key in keys)
    rows = (Bar(name="keys with refused requests", value=f"{number:,}"),)
    return Group(title="Keys", note="expired, revoked, or with a wrong secret", rows=rows)


def facts_of(counts: Body) -> list[Fact]:
    """Return the headline figures of some runs."""
    outcomes = counts["by_outcome"]
    known = sum(outcomes.values()) - outcomes.get("unknown", 0)
    pairs = counts["recovered"].values()
    recovered, judged = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
    return [
        Fact("Runs", f"{counts['runs']:,}"),
        Fact("Succeeded", *_share(outcomes.get("success", 0), known, "with a known outcome")),
        Fact("Texts told", f"{counts['injections']:,}"),
        Fact("Recovered", *_share(recovered, judged, "judged texts")),
    ]


def _share(part: int, whole: int, words: str) -> tuple[str, str]:
    return (f"{100 * part / whole:.0f} %", f"of {whole:,} {words}") if whole else ("–", "")


def _groups(counts: Body) -> Iterable[Group]:
    runs, summarised = max(1, counts["runs"]), counts["summarised"]
    all_finished = sum(counts["by_outcome"].values())
    finished = f"the newest {summarised:,} finished runs" if summarised < all_finished else "finished runs"
    live = {"live": counts["live"]} if counts["live"] else {}
    states = {name: counts["by_state"][name] for name in STATES if name in counts["by_state"]}
    yield Group(title="Outcomes", note="of all runs", rows=tuple(_outcomes({**live, **counts["by_outcome"]}, runs)))
    yield Group(
        title="States",
        note="of the newest step of each run",
        rows=tuple(Bar(name=name, value=f"{n:,}", share=n / runs, kind=name) for name, n in states.items()),
    )
    yield Group(title="Monitors fired", note=f"{finished} in which a monitor fired",
                rows=tuple(_bars(counts["monitors"], max(1, summarised))))  # fmt: skip
    yield Group(title="Recovered, by failure type", note="judged three steps after a text",
                rows=tuple(_recovered(counts["recovered"])))  # fmt: skip
    faults = {
        "steps not steered because of a fault": counts["faults"],
        "texts that did not fit": counts["dropped"],
    }
    yield Group(title="Faults and drops", note=f"of {finished}",
                rows=tuple(Bar(name=name, value=f"{n:,}") for name, n in faults.items()))  # fmt: skip


def _outcomes(numbers: Mapping[str, int], runs: int) -> Iterable[Bar]:
    for kind, words in OUTCOMES.items():
        if number := numbers.get(kind, 0):
            yield Bar(name=words, value=f"{number:,}", share=number / runs, kind=kind)


def _bars(numbers: Mapping[str, int], whole: int) -> Iterable[Bar]:
    for name, number in numbers.items():
        if number:
            yield Bar(name=name, value=f"{number:,}", share=min(1.0, number / whole))


def _recovered(pairs: Mapping[str, tuple[int, int]]) -> Iterable[Bar]:
    for name, (recovered, judged) in pairs.items():
        part = recovered / max(1, judged)
        yield Bar(name=name, value=f"{recovered:,} of {judged:,}, {100 * part:.0f} %", share=part)
