"""Steps that bring nothing new: sprawl, drift and churn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from reasonblocks.types import Evaluation, Step

Act = Callable[..., Step]
Play = Callable[..., "list[Evaluation]"]

KNOWN = "The ferry to Norrholm leaves at 8:10 and 14:30 from pier four, and bikes travel free on weekdays only."
PARTS = [f"{KNOWN} Row {n}: {' '.join(f'{word}{n}' for word in KNOWN.split())}" for n in range(6)]
"""Long results, each with much that the others do not have."""


def fired(play: Play, steps: Sequence[Step], task: str = "") -> set[str]:
    return {name for evaluation in play(steps, task=task) for name in evaluation.fired}


def reads(act: Act) -> list[Step]:
    """The first six steps, each of which brings something."""
    return [act("open_page", text, page=f"timetable-{n}") for n, text in enumerate(PARTS)]


def vain(act: Act, *, page: str = "other") -> list[Step]:
    """Four new calls whose results have only what was there before."""
    cuts = [f"{PARTS[n]} {PARTS[n + 1]}" for n in range(4)]
    return [act("open_page", text, page=f"{page}-{n}") for n, text in enumerate(cuts)]


def test_new_calls_that_bring_nothing_are_sprawl(act: Act, play: Play) -> None:
    assert "late_sprawl" in fired(play, [*reads(act), *vain(act)])


def test_new_calls_that_bring_something_are_no_sprawl(act: Act, play: Play) -> None:
    fresh = [act("open_page", f"{n} " + " ".join(f"w{n}x{at}" for at in range(30)), page=f"p{n}") for n in range(9)]
    assert fired(play, [*reads(act), *fresh]) == set()


def test_new_calls_that_bring_nothing_at_the_start_are_no_sprawl_yet(act: Act, play: Play) -> None:
    start = [act("open_page", KNOWN, page=f"p{n}") for n in range(4)]
    assert "late_sprawl" not in fired(play, start)


def test_acknowledgements_of_new_calls_are_no_sprawl(act: Act, play: Play) -> None:
    booked = [act("book", "Booked.", seat=f"row {n}") for n in range(6)]
    assert "late_sprawl" not in fired(play, [*reads(act), *booked])


@pytest.mark.parametrize(
    "task", ["Find when the ferry to Norrholm leaves", "Find when the ferry – to Norrholm – leaves"]
)
def test_calls_off_the_task_that_bring_nothing_are_drift(act: Act, play: Play, task: str) -> None:
    named = act("open_page", PARTS[0], page="norrholm")
    assert "silent_topic_drift" in fired(play, [named, *reads(act), *vain(act, page="cinema")], task)


def test_calls_that_name_the_task_are_no_drift(act: Act, play: Play) -> None:
    named = act("open_page", PARTS[0], page="norrholm")
    steps = [named, *reads(act), *vain(act, page="ferry norrholm")]
    assert "silent_topic_drift" not in fired(play, steps, "Find when the ferry to Norrholm leaves")


def test_calls_off_the_task_that_bring_something_are_no_drift(act: Act, play: Play) -> None:
    named = act("open_page", PARTS[0], page="norrholm")
    fresh = [act("open_page", f"{n} " + " ".join(f"w{n}x{at}" for at in range(30)), page=f"p{n}") for n in range(6)]
    assert "silent_topic_drift" not in fired(play, [named, *fresh], "Find when the ferry to Norrholm leaves")
