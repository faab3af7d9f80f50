"""What came of a lesson: counted after the run has shown it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from reasonblocks.backends.pattern_stats import MAX_RUNS, PatternStats
from reasonblocks.engine.recovery import JUDGED_AFTER
from reasonblocks.events import RunFinish, StepEvent
from reasonblocks.types import JSON, Doubt


class Counted:
    """A store that only counts."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def count(self, ids: Iterable[str], what: str) -> None:
        self.counts.update((one, what) for one in ids)

    def of(self, one: str) -> dict[str, int]:
        return {what: count for (name, what), count in self.counts.items() if name == one}


def shown(step: int, *ids: str, fired: tuple[str, ...] = ("semantic_loop",), run: str = "r", **more: JSON) -> StepEvent:
    metadata: dict[str, JSON] = {"pattern_ids": list(ids), "retrieved": {"e2": list(ids)}, "fsm_state": "NORMAL"}
    return StepEvent(run_id=run, step_index=step, timestamp=0.0, monitors_fired=fired, metadata={**metadata, **more})


def raised(composite: float) -> StepEvent:
    """Pattern "a" shown where no monitor fired."""
    return replace(shown(4, "a", fired=()), composite=composite)


def plain(step: int, *fired: str, state: str = "NORMAL", run: str = "r") -> StepEvent:
    return StepEvent(run_id=run, step_index=step, timestamp=0.0, monitors_fired=fired, metadata={"fsm_state": state})


def after(*events: StepEvent | RunFinish) -> dict[str, int]:
    """What is counted of pattern "a"."""
    store = Counted()
    sink = PatternStats(store)
    for event in events:
        sink.emit(event)
    return store.of("a")


def finish(outcome: str, run: str = "r") -> RunFinish:
    return RunFinish(run_id=run, outcome=outcome, timestamp=0.0)


SEEN = {"retrieved": 1, "injected": 1}


def test_a_lesson_that_is_shown_is_counted() -> None:
    assert after(shown(4, "a")) == SEEN


def test_a_lesson_that_is_retrieved_but_did_not_fit_is_not_shown() -> None:
    assert after(shown(4, "a", pattern_ids=[])) == {"retrieved": 1}


def test_trouble_that_is_gone_three_steps_later_is_recovery() -> None:
    assert after(shown(4, "a"), plain(5, "semantic_loop"), plain(6), plain(7)) == {**SEEN, "recovered": 1}


@pytest.mark.parametrize("later", [plain(7, "semantic_loop"), plain(7, state="SLOW")])
def test_trouble_that_is_still_there_three_steps_later_is_none(later: StepEvent) -> None:
    assert after(shown(4, "a"), plain(5), plain(6), later) == {**SEEN, "not_recovered": 1}


def test_nothing_is_judged_before_three_steps_have_passed() -> None:
    assert after(shown(4, "a"), *(plain(4 + ahead) for ahead in range(1, JUDGED_AFTER))) == SEEN


def test_auxiliary_calls_are_no_steps_after_which_a_lesson_is_judged() -> None:
    aside = [replace(plain(at), metadata={"skipped_reason": "auxiliary", "fsm_state": "NORMAL"}) for at in range(5, 10)]
    assert after(shown(4, "a"), *aside, plain(10), plain(11)) == SEEN
    assert after(shown(4, "a"), *aside, plain(10), plain(11), plain(12)) == {**SEEN, "recovered": 1}


def test_a_lesson_is_judged_once() -> None:
    assert after(shown(4, "a"), plain(7), plain(8), plain(9), finish("success")) == {**SEEN, "recovered": 1}


@pytest.mark.parametrize(
    ("outcome", "counted"),
    [("success", {"recovered": 1}), ("failure: ValueError", {"not_recovered": 1}), ("failure: abandoned", {})],
)
def test_a_run_that_ends_before_says_by_its_outcome(outcome: str, counted: dict[str, int]) -> None:
    assert after(shown(4, "a"), finish(outcome)) == {**SEEN, **counted}


def test_a_success_that_its_last_step_contradicts_is_no_recovery() -> None:
    end = replace(finish("success"), doubts=(Doubt(monitor="claim_contradiction", text="You said done."),))
    assert after(shown(4, "a"), end) == {**SEEN, "not_recovered": 1}
    assert after(shown(4, "a"), plain(7), end) == {**SEEN, "recovered": 1}


def test_a_lesson_that_is_shown_while_all_is_well_is_not_judged() -> None:
    assert after(shown(4, "a", fired=()), plain(7), finish("success")) == SEEN


@pytest.mark.parametrize(("composite", "judged"), [(0.15, {}), (0.16, {"recovered": 1})])
def test_a_raised_composite_is_trouble_enough_to_judge(composite: float, judged: dict[str, int]) -> None:
    assert after(raised(composite), plain(7)) == {**SEEN, **judged}


def test_standing_rules_are_not_judged() -> None:
    assert after(shown(4, "a", retrieved={"e3": ["a"]}), plain(7)) == SEEN


def test_two_runs_are_judged_apart() -> None:
    events = (shown(4, "a"), shown(4, "b", run="other"), plain(7, run="other"), finish("failure: x"))
    assert after(*events) == {**SEEN, "not_recovered": 1}


def test_runs_that_never_end_are_forgotten() -> None:
    store = Counted()
    sink = PatternStats(store)
    for number in range(MAX_RUNS + 5):
        sink.emit(shown(1, "a", run=str(number)))
    sink.emit(finish("success", run="0"))
    sink.emit(finish("success", run=str(MAX_RUNS + 4)))
    assert store.of("a")["recovered"] == 1
