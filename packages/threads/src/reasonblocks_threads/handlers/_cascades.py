"""Cascades: the end of a child reaches its parent, and the end of a parent reaches all below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ThreadsError
from ..phases import Phase, Trigger
from ..values import SYSTEM, Command, ExpectPhase

if TYPE_CHECKING:
    from ..engine import Engine
    from ..values import Thread, Work


def cascade_up(engine: Engine, work: Work) -> None:
    """Report the end of a child to its parent, once."""
    child = engine.thread(work.thread_id)
    if child is None or child.parent is None or not child.phase.is_terminal:
        return
    data = {"child": child.id, "phase": child.phase.value}

    def make(parent: Thread) -> Command | None:
        if parent.phase is not Phase.MONITORING:
            return None
        return Command(
            id=f"work:{work.id}:{Trigger.EXECUTION_DONE.value}",
            thread_id=parent.id,
            trigger=Trigger.EXECUTION_DONE,
            expect=ExpectPhase(phase=parent.phase, entered=parent.entered),
            actor=SYSTEM,
            at=engine.now(),
            data=data,
            caused_by=f"{child.id}:{child.entered}",
        )

    engine.submit_latest(child.parent, make)


def cascade_down(engine: Engine, work: Work) -> None:
    """Close every live child of a thread that has ended; each closes its own in turn.

    A child that cannot be closed now does not keep the others open: its error is raised after them.
    """
    parent = engine.thread(work.thread_id)
    if parent is None or not parent.phase.is_terminal:
        return
    failed: ThreadsError | None = None
    for child in parent.children:
        try:
            _close(engine, work, parent, child.id)
        except ThreadsError as exc:
            failed = exc
    if failed is not None:
        raise failed


def _close(engine: Engine, work: Work, parent: Thread, child_id: str) -> None:
    def make(child: Thread) -> Command | None:
        if child.phase.is_terminal:
            return None
        return Command(
            id=f"work:{work.id}:{child.id}",
            thread_id=child.id,
            trigger=Trigger.PARENT_FORCE_CLOSE,
            expect=ExpectPhase(phase=child.phase, entered=child.entered),
            actor=SYSTEM,
            at=engine.now(),
            data={"by": parent.id},
            caused_by=f"{parent.id}:{parent.entered}",
        )

    engine.submit_latest(child_id, make)
