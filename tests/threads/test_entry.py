"""The third column of the table: the rows with which each phase is entered."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from reasonblocks_threads.catalogue import Catalogue
from reasonblocks_threads.codec import encode
from reasonblocks_threads.entry import entry
from reasonblocks_threads.phases import STAGES, Addition, Phase, Trigger, WorkKind, inferring
from reasonblocks_threads.table import CARD_KINDS
from reasonblocks_threads.values import Cause, NewWork, Report, Rows
from tests.threads.pure import AGENT, CHILDREN, MARA, RULES, Walk, reached

MINUTE, DAY = 60.0, 86_400.0
WORKS = {
    Phase.PROPOSED: {"begin"},
    Phase.AWAITING_INFERENCE: {"infer"},
    Phase.EXECUTING: {"execute"},
    Phase.CLEANING_UP: {"clean_up"},
}
TIMES = {
    Phase.PROPOSED: DAY,
    Phase.AWAITING_INFERENCE: 15 * MINUTE,
    **{inferring(stage): 3 * MINUTE for stage in STAGES},
    **dict.fromkeys(CARD_KINDS, 7 * DAY),
    Phase.AWAITING_REVIEW: 3 * DAY,
    Phase.EXECUTING: 180.0,
    Phase.CLEANING_UP: 2.5 * MINUTE,
}
CASCADES = {"cascade_up", "cascade_down"}


def works(rows: Rows) -> dict[str, NewWork]:
    found: dict[str, NewWork] = {work.kind: work for work in rows.works}
    assert len(found) == len(rows.works), "one work of each kind"
    return found


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_has_its_works_its_timer_and_its_card(phase: Phase) -> None:
    walk = reached(phase)
    if phase is Phase.EXECUTING:
        walk = Walk().to_consent().execute()
    rows = entry(None, walk.head, walk.rules, at=500.0)
    timer = works(rows).pop("timeout", None)
    assert {*works(rows)} - {"timeout"} == WORKS.get(phase, set())
    assert (timer and timer.due_at - 500.0) == TIMES.get(phase)
    assert not rows.withdraw_card
    assert rows.cancel == ()
    card = rows.card
    assert (card and card.kind) == CARD_KINDS.get(phase)
    if card is not None:
        assert (card.id, card.opened_at) == (f"{walk.id}.{walk.head.entered}", 500.0)
        assert card.expires_at == 500.0 + TIMES[phase]


@pytest.mark.parametrize("phase", [Phase.AWAITING_CONFIRMATION, Phase.EXECUTING, Phase.DONE])
def test_a_command_that_moves_nothing_changes_no_row(phase: Phase) -> None:
    walk = reached(phase)
    walk.send(Addition.NOTE, {"text": "x"}, by=MARA)
    assert walk.rows == Rows()


def test_leaving_withdraws_the_card_and_ends_all_works_but_cascades() -> None:
    walk = reached(Phase.AWAITING_INTENT_CONFIRMATION)
    walk.send(Trigger.CONFIRMED, by=MARA)
    assert walk.rows.withdraw_card
    assert {*walk.rows.cancel} == {*get_args(WorkKind)} - CASCADES


def test_an_inference_that_starts_keeps_its_work_and_no_other_change_does() -> None:
    walk = reached(Phase.AWAITING_INFERENCE)
    walk.send(Trigger.INFERENCE_STARTED, {"work": "w"})
    assert {*walk.rows.cancel} == {*get_args(WorkKind)} - CASCADES - {"infer"}
    assert not walk.rows.withdraw_card
    walk.send(Trigger.INFERENCE_FAILED, {"code": "failed"})
    assert "infer" in walk.rows.cancel


def test_the_card_shows_the_gates_that_this_command_judged() -> None:
    walk = reached(Phase.AWAITING_INTENT_CONFIRMATION)
    assert walk.rows.card is not None
    assert [each.gate for each in walk.rows.card.why_asking] == ["auto_advance"]
    walk.send(Trigger.REDIRECTED, by=MARA)
    walk.send(Trigger.INFERENCE_REJECTED, {"code": "budget", "detail": "it is spent"})
    assert walk.rows.card is not None
    assert (walk.rows.card.why_asking, walk.rows.card.problem) == ((), "it is spent")


@pytest.mark.parametrize(("run", "seconds", "urgency"), [("live", 120.0, 20), ("ended", 900.0, 100)])
def test_a_live_run_waits_less_and_comes_first(run: str, seconds: float, urgency: int) -> None:
    walk = Walk(run=run)
    walk.send(Trigger.BEGIN_INFERENCE)
    found = works(walk.rows)
    assert found["timeout"].due_at == walk.now + seconds
    assert (found["infer"].urgency, found["infer"].due_at) == (urgency, walk.now)


@pytest.mark.parametrize(("action", "again"), [("deploy", False), ("tidy", True)])
def test_an_execution_that_has_begun_is_only_repeated_if_that_changes_nothing(action: str, again: bool) -> None:
    """A doctor that rebuilds the rows of a thread never makes an action run twice."""
    walk = Walk().to_executing(action)
    assert ("execute" in works(entry(None, walk.head, walk.rules, at=1.0))) is again


@pytest.mark.parametrize(("action", "attempts"), [("deploy", 1), ("tidy", 3)])
def test_only_an_idempotent_action_is_attempted_again(action: str, attempts: int) -> None:
    walk = Walk().to_consent(action).execute()
    work = works(walk.rows)["execute"]
    assert work.data == {"lease_s": 150.0, "attempts": attempts}
    assert work.needs == f"action:{action}"


def test_works_name_what_a_process_must_have() -> None:
    rules = replace(RULES, inferencer="large", notified=True)
    walk = Walk(rules=rules)
    walk.send(Trigger.BEGIN_INFERENCE)
    assert works(walk.rows)["infer"].needs == "inferencer:large"
    walk.infer().send(Trigger.CLEANUP_REQUESTED, by=MARA)
    assert works(walk.rows)["clean_up"].needs == "cleaner:stall"
    walk.send(Trigger.CLEANUP_FAILED, {"detail": "no"})
    assert works(walk.rows)["notify"].needs == "notifier"


@pytest.mark.parametrize("phase", CARD_KINDS)
def test_persons_are_told_of_every_card_but_a_plain_confirmation(phase: Phase) -> None:
    walk = reached(phase)
    rows = entry(None, walk.head, replace(walk.rules, notified=True), at=1.0)
    assert ("notify" in works(rows)) is (CARD_KINDS[phase] != "confirmation")
    assert "notify" not in works(entry(None, walk.head, walk.rules, at=1.0))


def test_an_end_reaches_the_parent_and_the_live_children() -> None:
    parent = "th_parent"
    walk = Walk(parent=parent, ancestors=[parent])
    walk.send(Trigger.DISMISSED_BY_USER, by=MARA)
    assert {*works(walk.rows)} == {"cascade_up"}
    above = Walk(parent=parent, ancestors=[parent])
    above.send(Trigger.DECOMPOSED, {"children": CHILDREN})
    above.send(Trigger.EXECUTION_DONE, {"child": above.head.children[0].id, "phase": "done"})
    assert above.rows == Rows()
    above.send(Trigger.PARENT_FORCE_CLOSE, {"by": parent})
    assert {*works(above.rows)} == CASCADES
    alone = reached(Phase.MONITORING)
    for child in alone.head.children:
        alone.send(Trigger.EXECUTION_DONE, {"child": child.id, "phase": "done"})
    assert works(alone.rows) == {}
    assert alone.rows.card is None


def test_an_execution_of_an_action_that_left_the_catalogue_still_times_out() -> None:
    walk = reached(Phase.EXECUTING)
    unknown = replace(RULES, catalogue=Catalogue(specs={}, own={}))
    assert works(entry(None, walk.head, unknown, at=0.0))["timeout"].due_at == 180.0
    walk.finish(Report.failed("x"))


def test_evidence_alone_moves_no_timer() -> None:
    walk = Walk(cause=encode(Cause(kind="stall", key="k", title="t")))
    walk.send(Addition.EVIDENCE, {"items": [{"id": "e", "label": "l"}], "run": "live"}, by=AGENT)
    assert walk.rows == Rows()
