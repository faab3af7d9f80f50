"""`submit`: one transaction for a command, its events and all rows; who is slower learns what happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reasonblocks.exceptions import ConfigError
from reasonblocks_threads import (
    Actor,
    CardClosed,
    Cause,
    Conflict,
    Evidence,
    Phase,
    ReadOnly,
    Refused,
    Thread,
    Trigger,
)
from reasonblocks_threads.phases import Addition
from reasonblocks_threads.ports import Writing
from reasonblocks_threads.values import (
    SYSTEM,
    Command,
    Expect,
    ExpectCard,
    ExpectPhase,
    ExpectVersion,
    ExpectWork,
    thread_id_of,
)
from tests.threads.driver import MARA, Driver

LEA = Actor.person("lea")


def command(
    thread: Thread,
    trigger: Trigger | Addition,
    expect: Expect | None = None,
    *,
    id: str = "c1",
    by: Actor = SYSTEM,
    **data: object,
) -> Command:
    expect = expect or ExpectVersion(version=thread.version)
    return Command(id=id, thread_id=thread.id, trigger=trigger, expect=expect, actor=by, at=1.0, data=data)


def rows(driver: Driver, thread: Thread) -> tuple[object, ...]:
    """Return everything that a refused command must leave alone."""
    with driver.store.read() as reading:
        return (
            reading.head(thread.id),
            reading.log(thread.id),
            reading.works(thread.id),
            reading.open_card(thread.id),
            len(reading.feed()),
        )


def test_a_known_command_returns_its_result_and_writes_nothing(driver: Driver) -> None:
    thread = driver.reach("proposed")
    note = command(thread, Addition.NOTE, by=MARA, text="look")
    first = driver.engine.submit(note)
    before = rows(driver, thread)
    again = driver.engine.submit(note)
    assert not first.replayed
    assert again.replayed
    assert [event.kind for event in again.events] == ["noted"]
    assert rows(driver, thread) == before


@pytest.mark.parametrize("change", [{"text": "other"}, {"by": LEA}])
def test_a_known_id_with_another_content_is_a_conflict(driver: Driver, change: Mapping[str, Any]) -> None:
    thread = driver.reach("proposed")
    given: dict[str, Any] = {"by": MARA, "text": "look"}
    after = driver.engine.submit(command(thread, Addition.NOTE, **given)).thread
    before = rows(driver, thread)
    with pytest.raises(Conflict, match="another content"):
        driver.engine.submit(command(after, Addition.NOTE, **{**given, **change}))
    assert rows(driver, thread) == before


def test_what_a_command_expects_is_checked(driver: Driver) -> None:
    thread = driver.reach("proposed")
    wrong: list[Expect] = [
        ExpectVersion(version=thread.version + 1),
        ExpectPhase(phase=Phase.PROPOSED, entered=thread.entered + 1),
        ExpectPhase(phase=Phase.MONITORING, entered=thread.entered),
        ExpectWork(work=f"{thread.id}.1.begin", lease="nobody's"),
        ExpectWork(work=f"{thread.id}.1.execute", lease="nobody's"),
        ExpectCard(card=f"{thread.id}.1"),
    ]
    before = rows(driver, thread)
    for expect in wrong:
        with pytest.raises(Conflict):
            driver.engine.submit(command(thread, Trigger.BEGIN_INFERENCE, expect))
    assert rows(driver, thread) == before


def test_a_closed_card_names_its_answer_and_the_open_card(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    card = driver.card(thread.id)
    driver.threads.answer(card, "edit", by=LEA, parameters={"n": 2})
    now = driver.card(thread.id)
    before = rows(driver, thread)
    with pytest.raises(CardClosed) as caught:
        driver.threads.answer(card, "approve", by=MARA)
    closed = caught.value
    assert (closed.by, closed.answer, closed.next_card) == ("lea", "edit", now.id)
    assert closed.phase is Phase.AWAITING_CONFIRMATION
    assert rows(driver, thread) == before


def test_the_same_answer_twice_is_refused(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    card = driver.card(thread.id)
    driver.threads.answer(card, "approve", by=MARA)
    with pytest.raises(CardClosed) as caught:
        driver.threads.answer(card, "approve", by=MARA)
    assert (caught.value.by, caught.value.answer, caught.value.next_card) == ("mara", "approve", None)


def test_a_withdrawn_card_has_no_answer(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    card = driver.card(thread.id)
    driver.threads.resolve(thread.id, "the run recovered")
    with pytest.raises(CardClosed) as caught:
        driver.threads.answer(card, "approve", by=MARA)
    assert (caught.value.by, caught.value.answer, caught.value.phase) == (None, None, Phase.DISMISSED)


def test_an_answer_must_name_the_open_card(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    before = rows(driver, thread)
    for expect in (ExpectVersion(version=thread.version), ExpectPhase(phase=thread.phase, entered=thread.entered)):
        with pytest.raises(Refused, match="must name it"):
            driver.engine.submit(command(thread, Trigger.DISMISSED_BY_USER, expect, by=MARA))
    assert rows(driver, thread) == before


def test_the_effects_of_a_command_belong_to_its_transaction(driver: Driver) -> None:
    thread = driver.reach("proposed")
    before = rows(driver, thread)

    def effects(writing: Writing, after: Thread) -> None:
        writing.set_meta({"seen": after.phase.value})
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        driver.engine.submit(command(thread, Trigger.BEGIN_INFERENCE), effects=effects)
    assert rows(driver, thread) == before
    with driver.store.read() as reading:
        assert "seen" not in reading.meta()


@pytest.mark.parametrize(("faster", "wins"), [(4, True), (5, False)])
def test_the_system_decides_anew_five_times(driver: Driver, faster: int, wins: bool) -> None:
    thread = driver.reach("proposed")
    tries = []

    def make(now: Thread) -> Command:
        tries.append(now.version)
        made = command(now, Trigger.BEGIN_INFERENCE)
        if len(tries) <= faster:
            driver.threads.note(thread.id, "somebody is faster", by=LEA)
        return made

    if wins:
        submitted = driver.engine.submit_latest(thread.id, make)
        assert submitted is not None
        assert submitted.thread.phase is Phase.AWAITING_INFERENCE
    else:
        with pytest.raises(Conflict):
            driver.engine.submit_latest(thread.id, make)
        assert driver.get(thread.id).phase is Phase.PROPOSED
    assert len(tries) == 5


def test_nothing_is_submitted_if_there_is_nothing_to_do(driver: Driver) -> None:
    thread = driver.reach("proposed")
    before = rows(driver, thread)
    assert driver.engine.submit_latest(thread.id, lambda _: None) is None
    assert rows(driver, thread) == before


def test_a_result_needs_its_lease_once(driver: Driver) -> None:
    thread = driver.reach("proposed")
    work = driver.claim()
    assert driver.engine.report(work, Trigger.BEGIN_INFERENCE, {}) is not None
    assert driver.engine.report(work, Trigger.BEGIN_INFERENCE, {}) is not None  # replayed
    assert [event.kind for event in driver.threads.log(thread.id)] == ["thread_opened", "phase_changed"]


def test_the_lost_result_of_an_execution_is_a_late_report(driver: Driver) -> None:
    thread = driver.reach("executing")
    work = driver.claim()
    driver.clock.advance(1_000)
    with driver.store.write() as writing:
        writing.remove_works(thread.id, ["execute"])
    data = {"execution": f"{thread.id}.x{thread.entered}", "report": {"succeeded": True}}
    assert driver.engine.report(work, Trigger.EXECUTION_DONE, data, detail="shipped") is None
    last = driver.threads.log(thread.id)[-1]
    assert last.kind == "late_report"
    assert last.data["detail"] == "shipped"
    assert driver.get(thread.id).phase is Phase.EXECUTING


def test_a_lost_begin_leaves_nothing(driver: Driver) -> None:
    thread = driver.reach("proposed")
    work = driver.claim()
    driver.threads.dismiss(thread.id, by=MARA)
    before = rows(driver, thread)
    assert driver.engine.report(work, Trigger.BEGIN_INFERENCE, {}) is None
    assert rows(driver, thread) == before


def test_children_open_with_their_parent_or_not_at_all(driver: Driver) -> None:
    taken = driver.open("taken")
    feed = len(driver.threads.feed())
    causes = [driver.cause("free"), taken.cause]
    with pytest.raises(Refused, match="'taken' exists"):
        driver.threads.open(driver.cause("umbrella"), children=causes)
    assert len(driver.threads.feed()) == feed
    parent = driver.threads.open(driver.cause("umbrella"), children=[driver.cause("free"), driver.cause("other")])
    assert parent.phase is Phase.MONITORING
    ids = [thread_id_of("default", key) for key in ("free", "other")]
    assert [child.id for child in parent.children] == ids
    assert [driver.get(id).parent for id in ids] == [parent.id, parent.id]


def test_a_superseded_thread_ends_in_the_transaction_of_the_next(driver: Driver) -> None:
    old = driver.threads.open(driver.cause("old", family="stall run-1"))
    new = driver.threads.open(driver.cause("new", family="stall run-1"), supersedes=old.id)
    assert new.id != old.id
    ended = driver.get(old.id)
    assert (ended.phase, ended.reason) == (Phase.DISMISSED, f"superseded by {new.id}")


@pytest.mark.parametrize("phase", ["executing", "awaiting_review", "done", "monitoring"])
def test_nothing_takes_the_place_of_what_executes(driver: Driver, phase: str) -> None:
    old = driver.reach(phase)
    before = rows(driver, old)
    with pytest.raises(Refused):
        driver.threads.open(driver.cause("new"), supersedes=old.id)
    assert rows(driver, old) == before


SECRET = "the password of the staging database"


def test_private_evidence_is_in_no_log_and_can_be_erased(driver: Driver) -> None:
    private = Evidence(id="e1", label="log", text=SECRET, private=True)
    thread = driver.threads.open(Cause(kind="stall", key="k", title="t", evidence=(private,)))
    driver.threads.add_evidence(thread.id, Evidence(id="e2", label="log", text=SECRET, private=True))
    seen = repr((driver.threads.feed(), driver.get(thread.id)))
    assert SECRET not in seen
    blobs = [each.blob for each in driver.get(thread.id).evidence]
    with driver.store.read() as reading:
        assert [reading.blob(blob or "") for blob in blobs] == [SECRET, SECRET]
    assert len({*blobs}) == 2
    assert driver.threads.erase(thread.id, by=MARA) == 2
    with driver.store.read() as reading:
        assert [reading.blob(blob or "") for blob in blobs] == [None, None]
    assert driver.threads.log(thread.id)[-1].kind == "noted"


def test_private_texts_without_a_log_line_are_not_kept(driver: Driver) -> None:
    thread = driver.reach("proposed")
    items = [{"id": f"e{n}", "label": "l", "text": f"{SECRET} {n}", "private": True} for n in range(80)]
    driver.engine.submit(command(thread, Addition.EVIDENCE, items=items))
    assert driver.threads.erase(thread.id, by=MARA) == 64
    db = driver.store._writing()  # type: ignore[attr-defined]
    assert db.execute("SELECT count(*) FROM blob").fetchone() == (0,)


def test_private_evidence_of_a_child_is_kept_apart(driver: Driver) -> None:
    evidence = Evidence(id="e", label="l", text=SECRET, private=True)
    parent = driver.threads.open(driver.cause(), children=[driver.cause(evidence=(evidence,))])
    assert SECRET not in repr(driver.threads.feed())
    assert driver.threads.erase(parent.children[0].id, by=MARA) == 1


def test_a_private_text_is_no_part_of_what_identifies_a_command(driver: Driver) -> None:
    thread = driver.reach("proposed")
    for text in ("one", "two"):
        items = [{"id": "e", "label": "l", "text": text, "private": True}]
        driver.engine.submit(command(thread, Addition.EVIDENCE, items=items))
    assert len(driver.get(thread.id).evidence) == 1


def test_the_evidence_of_one_key_is_added_to_its_family_once(driver: Driver) -> None:
    first = driver.threads.open(driver.cause("one", family="f"))
    cause = driver.cause("two", family="f", evidence=(Evidence(id="e", label="l", text="t"),))
    again = [driver.threads.open(cause) for _ in range(2)]
    assert {thread.id for thread in again} == {first.id}
    assert [each.id for each in driver.get(first.id).evidence] == ["e"]


def test_the_same_evidence_by_others_and_to_the_next_thread_of_a_family_is_no_conflict(driver: Driver) -> None:
    cause = driver.cause("two", family="f", evidence=(Evidence(id="e", label="l", text="t"),))
    for key in ("one", "three"):
        live = driver.threads.open(driver.cause(key, family="f"))
        for name in ("ann", "bob"):
            assert driver.threads.open(cause, by=Actor.agent(name)).id == live.id
        assert [each.id for each in driver.get(live.id).evidence] == ["e"]
        driver.threads.dismiss(live.id, by=MARA)


def test_the_id_of_a_command_reveals_no_private_text(driver: Driver) -> None:
    live = driver.threads.open(driver.cause("one", family="f"))
    cause = driver.cause("two", family="f", evidence=(Evidence(id="e", label="l", text=SECRET, private=True),))
    ids = []
    for _ in range(2):
        driver.threads.open(cause)
        ids.append(driver.threads.log(live.id)[-1].command_id)
    assert ids[0] != ids[1], "an id that follows from the text would be the same"
    assert driver.threads.erase(live.id, by=MARA) == 2


def test_nothing_is_erased_for_somebody_without_a_name(driver: Driver) -> None:
    private = Evidence(id="e", label="l", text=SECRET, private=True)
    thread = driver.threads.open(driver.cause(evidence=(private,)))
    with pytest.raises(ConfigError):
        driver.threads.erase(thread.id, by="mara")  # type: ignore[arg-type]
    assert driver.threads.erase(thread.id, by=MARA) == 1


def test_a_child_keeps_the_thread_that_it_follows(driver: Driver) -> None:
    before = driver.reach("dismissed")
    parent = driver.threads.open(driver.cause())
    assert driver.threads.open(driver.cause(), parent=parent.id, follows=before.id).follows == before.id


def test_an_unreadable_thread_is_read_only(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    driver.engine.set_suspect(thread)
    before = rows(driver, thread)
    with pytest.raises(ReadOnly):
        driver.answer(thread.id, "approve")
    assert rows(driver, thread) == before
