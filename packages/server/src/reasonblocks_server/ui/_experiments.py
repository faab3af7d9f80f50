"""Shows the experiments, and the comparison of the arms of one."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.responses import Response

from reasonblocks.util.text import count_noun
from reasonblocks_workbench.report.view import Fact

from ..experiments import MIN_UNITS, Interval, Report, report_of
from ._pages import render
from ._visit import Refusal, Visit
from ._words import decimal, share

SENTENCES = {
    "better": "Steered runs succeeded more often than observed runs.",
    "worse": "Steered runs succeeded less often than observed runs.",
    "no difference shown": "The interval of the difference contains zero: steering may help, harm, or do neither.",
    "not enough data": f"Each arm needs {MIN_UNITS} units with a known outcome before the arms are compared.",
    "assignment broken": "The arms cannot be compared, because their units were not assigned correctly.",
}


def experiments(visit: Visit) -> Response:
    """Show the experiments of the org, the newest first."""
    visit.needs_whole_org()
    return render(visit, "experiments.html", "Experiments", rows=visit.server.storage.runs.experiments(visit.org))


def experiment(visit: Visit, experiment_id: str) -> Response:
    """Show the arms of an experiment, and the verdict."""
    rows, more = visit.server.storage.runs.units(visit.org, experiment_id, project_id=visit.key.project_id)
    if not rows:
        raise Refusal(404, "No such experiment", "This server has no run of this experiment.")
    report = report_of(rows, newest_only=more)
    return render(
        visit,
        "experiment.html",
        "Experiments",
        id=experiment_id,
        report=report,
        arms=(report.on, report.off),
        sentence=SENTENCES[report.verdict],
        least=MIN_UNITS,
        widest=_widest(report.difference),
        signed=signed,
        facts=list(_facts(report)),
    )


def _facts(report: Report) -> Iterator[Fact]:
    """Yield the differences of the means, and the planned and the real share of units that are on."""
    for name, one, digits in (("Steps", report.steps, 1), ("Tokens", report.tokens, 0)):
        if one is not None:
            low, high = decimal(one.low, digits), decimal(one.high, digits)
            yield Fact(f"{name}, on − off", decimal(one.value, digits), f"{low} to {high}")
    expected = "" if report.expected_on is None else f", {decimal(report.expected_on)} expected"
    yield Fact(
        "Planned share in arm on", share(report.on_fraction), f"{count_noun(report.on.units, 'unit')} on{expected}"
    )
    if report.p is not None:
        yield Fact(
            "p-value of the assignment",
            "under 0.001" if report.p < 0.001 else decimal(report.p, 3),
            "of a chi-square test",
        )


def _widest(difference: Interval | None) -> float:
    """Return the end of the scale on which a difference is drawn: the next tenth beyond its limits."""
    if difference is None:
        return 1.0
    reach = max(abs(difference.low), abs(difference.high), 0.1)
    return min(1.0, -(-reach * 10 // 1) / 10)


def signed(value: float) -> str:
    """Return a difference of shares in percentage points, as `+4.2 pp`."""
    return f"{100 * value:+.1f} pp".replace("-", "−")
