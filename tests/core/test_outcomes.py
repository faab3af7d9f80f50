"""The outcomes that runs are given, and what every reader takes them for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks import JsonlSink, SQLiteMonitorSink
from reasonblocks.engine.recovery import Judging, has_ended_well
from reasonblocks.exceptions import ConfigError
from reasonblocks.ports import TelemetrySink
from reasonblocks.types import StepInput, StepOutcome
from reasonblocks.types.outcomes import ABANDONED, OutcomeKind, failure_of, kind_of, outcome_of, parts_of
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.core.world import client


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        ("success", "success"), ("success: 12 of 12", "success"), ("Success", "success"), ("failure", "failure"),
        ("failure: ValueError", "failure"), (ABANDONED, "failure"), ("stopped: stalled", "stopped"),
        ("unknown", "unknown"), ("unknown: the user has left", "unknown"), ("the tests still fail", "unknown"),
        ("succeeded", "unknown"), ("", "unknown"), (None, "unknown"),
    ],
)  # fmt: skip
def test_a_recorded_outcome_is_known_by_its_first_word(outcome: str | None, kind: OutcomeKind) -> None:
    assert kind_of(outcome) == kind


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ("success", "success"), ("Success: 12 of 12", "success"), ("failure", "failure"),
        ("failure: tests", "failure: tests"), ("FAILURE: tests", "failure: tests"), ("stopped: cap", "stopped: cap"),
        ("unknown", "unknown"), ("unknown: the user has left", "unknown: the user has left"),
        ("lost", "failure: lost"), (" the tests still fail\n", "failure: the tests still fail"),
    ],
)  # fmt: skip
def test_any_other_word_that_finishes_a_run_is_the_reason_of_a_failure(given: str, outcome: str) -> None:
    assert outcome_of(given) == outcome


@given(st.text())
def test_the_outcome_of_a_run_is_never_in_doubt_of_its_kind(text: str) -> None:
    assert outcome_of(outcome_of(text)) == outcome_of(text)
    assert kind_of(outcome_of(text)) != "unknown" or outcome_of(text).startswith("unknown")
    assert kind_of(failure_of(text)) == "failure"


@given(st.text())
def test_the_reason_of_an_outcome_is_what_follows_its_word(text: str) -> None:
    start, reason = parts_of(outcome_of(text))
    assert (start + reason, kind_of(start)) == (outcome_of(text), kind_of(outcome_of(text)))


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("the tests still fail", "failure: the tests still fail"),
        ("failure: tests", "failure: tests"),
        ("success", "failure: success"),
        ("stopped", "failure: stopped"),
    ],
)
def test_a_marked_failure_is_a_failure(reason: str, outcome: str) -> None:
    assert failure_of(reason) == outcome


SINKS: Mapping[str, Callable[[Path], TelemetrySink]] = {"runs.jsonl": JsonlSink, "runs.sqlite": SQLiteMonitorSink}


def recorded(path: Path, sink: TelemetrySink, **ends: str) -> dict[str, RecordedRun]:
    """Return the recorded runs of a client: each ends with the text of its name, or is marked with it."""
    with closing(client(sinks=[sink])) as rb:
        for run_id, text in ends.items():
            session = rb.session(run_id=run_id)
            decision = session.begin_step(StepInput())
            session.end_step(decision, StepOutcome(text="Done."))
            if run_id.startswith("marked"):
                session.mark_failure(text)
                session.finish()
            else:
                session.finish(text)
    return {run.run_id: run for run in read_runs(str(path)) if isinstance(run, RecordedRun)}


@pytest.mark.parametrize("name", SINKS)
def test_readers_know_the_outcome_of_every_run_but_of_an_unknown_one(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    runs = recorded(path, SINKS[name](path), good="success", lost="lost", left="unknown", marked="the tests still fail")
    assert {run_id: (run.outcome_kind, run.has_outcome) for run_id, run in runs.items()} == {
        "good": ("success", True),
        "lost": ("failure", True),
        "left": ("unknown", False),
        "marked": ("failure", True),
    }


@pytest.mark.parametrize("outcome", ["", " ", 4, None])
def test_a_run_cannot_be_finished_with_what_is_no_text(outcome: object) -> None:
    with closing(client()) as rb:
        session = rb.session()
        with pytest.raises(ConfigError, match=r"^outcome="):
            session.finish(outcome)  # type: ignore[arg-type]
        assert session.outcome is None


@pytest.mark.parametrize(
    ("outcome", "judged", "recovered"),
    [
        ("success", True, True),
        ("failure: tests", True, False),
        ("stopped: cap", True, False),
        ("unknown", False, False),
        (ABANDONED, False, False),
    ],
)
def test_the_end_of_a_run_with_an_unknown_outcome_judges_no_text(outcome: str, judged: bool, recovered: bool) -> None:
    judging: Judging[str] = Judging()
    judging.wait(1, "a text")
    assert (bool(judging.left(outcome)), has_ended_well(outcome, ())) == (judged, recovered)
