"""Tests of hostile and damaged values: an error for their caller, and none for anybody else."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from reasonblocks_threads import Budget, Card, Cause, Evidence, Policy, Proposal, Refused, Stage, Threads
from reasonblocks_threads.errors import StoreUnavailable
from tests.threads.driver import MARA, Clock, Driver


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    with Driver(tmp_path / "threads.db") as found:
        yield found


def looping() -> dict[str, object]:
    found: dict[str, object] = {}
    found["again"] = found
    return found


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("usd", [math.inf, -math.inf])
def test_an_endless_budget_hides_no_card(usd: float) -> None:
    policy = Policy(auto_advance=frozenset(), budget=Budget(usd=usd))
    with Threads(None, policy=policy, clock=Clock()) as threads:
        threads.open(Cause(kind="c", key="a", title="A?"))
        threads.drain()

        assert [card.budget.usd for card in threads.cards()] == [usd]


@pytest.mark.parametrize("value", [looping(), object()])
def test_data_that_is_no_json_is_refused(driver: Driver, value: Any) -> None:
    with pytest.raises(Refused):
        driver.threads.open(Cause(kind="c", key="a", title=value))

    assert driver.threads.list(live=False) == ()


@pytest.mark.parametrize("value", [b"x", {"x"}, bytearray(b"x"), 1, True])
def test_bytes_sets_and_numbers_are_no_texts(driver: Driver, value: Any) -> None:
    thread = driver.reach("awaiting_confirmation")
    version = thread.version

    with pytest.raises(Refused):
        driver.threads.note(thread.id, value, by=MARA)
    with pytest.raises(Refused):
        driver.threads.add_evidence(thread.id, Evidence(id=value, label="l"))
    with pytest.raises(Refused):
        driver.open("another", proposals=[replace(Proposal.of_intent("t", confidence=0.9), author=value)])
    with pytest.raises(Refused):
        driver.answer(thread.id, "redirect", text=value)

    assert driver.get(thread.id).version == version
    assert len(driver.threads.list(live=False)) == 1


def test_countless_references_of_a_proposal_are_cut_at_once(driver: Driver) -> None:
    proposal = Proposal(
        id="", stage=Stage.INTENT, body={"text": "t"}, confidence=0.9, author="a", refs=("e1",) * 200_000
    )
    started = process_time()

    thread = driver.threads.open(Cause(kind="c", key="a", title="A?"), proposals=[proposal])

    assert len(thread.proposals[Stage.INTENT].refs) < 100
    assert process_time() - started < 5


@pytest.mark.parametrize("error", [Unprintable(), ValueError("x" * 1_000_000), asyncio.CancelledError()])
def test_no_error_of_a_notifier_ends_the_works_of_others(error: BaseException) -> None:
    told = []

    class Failing:
        def notify(self, card: Card) -> None:
            told.append(card.thread_id)
            raise error

    with Threads(None, notifier=Failing(), clock=Clock()) as threads:
        opened = [threads.open(Cause(kind="c", key=key, title="A?")).id for key in "ab"]
        threads.drain()

        assert sorted(told) == sorted(opened)
        assert len(threads.cards()) == 2


def test_a_secret_in_an_error_is_neither_stored_nor_logged(caplog: pytest.LogCaptureFixture) -> None:
    key = "sk-ant-api03-" + "Ab1-" * 24

    class Failing:
        def notify(self, card: Card) -> None:
            raise ValueError(f"refused: Authorization: Bearer {key}")

    with Threads(None, notifier=Failing(), clock=Clock()) as threads:
        thread = threads.open(Cause(kind="c", key="a", title="A?"))
        threads.drain()
        with threads._engine.store.read() as reading:
            errors = [work.error or "" for work in reading.works(thread.id)]
    told = [*errors, *(record.getMessage() for record in caplog.records)]
    assert any("refused" in text for text in errors)
    assert not any(key[:20] in text for text in told)


@pytest.mark.parametrize("body", ["{", "{}", "null"])
def test_a_damaged_card_hides_no_other_and_is_written_anew(driver: Driver, body: str) -> None:
    good, bad = driver.reach("awaiting_confirmation"), driver.reach("awaiting_review")
    before = {card.thread_id: card for card in driver.threads.cards()}
    driver.damage(f"UPDATE card SET body = '{body}' WHERE thread_id = '{bad.id}'")

    assert good.id in {card.thread_id for card in driver.threads.cards()}
    assert [finding.kind for finding in driver.threads.doctor(repair=True)] == ["card_missing"]
    assert {card.thread_id for card in driver.threads.cards()} == {*before}
    assert driver.threads.doctor() == ()


@pytest.mark.parametrize("change", ["data = '{'", "kind = 'zzz'"])
def test_a_damaged_work_does_not_end_the_queue(driver: Driver, change: str) -> None:
    bad = driver.open("bad")
    driver.damage(f"UPDATE work SET {change} WHERE thread_id = '{bad.id}'")
    good = driver.open("good")

    driver.drain()
    driver.threads.doctor(repair=True)
    driver.drain()

    assert driver.threads.get(good.id).phase.value != "proposed"
    assert driver.threads.get(bad.id).phase.value != "proposed"


@pytest.mark.parametrize(
    "change",
    [
        "version = version - 1", "version = version + 1", "phase = 'done'", "phase = 'zzz'", "stage = 'zzz'",
        "is_live = 0", "card = NULL", "card = 'th_other.3'", "stage = 'intent'",
    ],
)  # fmt: skip
def test_damaged_columns_are_mended(driver: Driver, change: str) -> None:
    thread = driver.reach("awaiting_confirmation")
    (before,) = (each for each in driver.threads.list() if each.id == thread.id)
    driver.damage(f"UPDATE thread SET {change} WHERE id = '{thread.id}'")

    driver.threads.doctor()
    assert "columns_differ" in {finding.kind for finding in driver.threads.doctor(repair=True)}

    assert driver.threads.doctor() == ()
    (after,) = (each for each in driver.threads.list() if each.id == thread.id)
    assert (after.phase, after.stage, after.card) == (before.phase, before.stage, before.card)
    assert after.card is not None
    driver.threads.answer(after.card, "reject", by=MARA)
    assert driver.threads.get(thread.id).phase.value == "dismissed"


@pytest.mark.parametrize("look", [Threads.cards, Threads.doctor])
def test_bytes_that_are_no_text_are_an_error_of_the_store(driver: Driver, look: Callable[[Threads], object]) -> None:
    driver.reach("awaiting_confirmation")
    driver.damage("UPDATE card SET body = CAST(x'ff7b' AS TEXT)")

    with pytest.raises(StoreUnavailable, match="decode"):
        look(driver.threads)


@pytest.mark.parametrize("run_id", [None, 3, b"x", ["x"], "\ud800", "\0", "x" * 100_000])
def test_a_mailbox_has_no_letter_for_what_is_no_run(driver: Driver, run_id: Any) -> None:
    assert driver.threads.mailbox().waiting(run_id) == ()


def test_keys_and_organisations_with_colons_are_not_mixed_up(tmp_path: Path) -> None:
    file, clock = tmp_path / "threads.db", Clock()
    with Threads(file, org_id="a", clock=clock) as one, Threads(file, org_id="a:a", clock=clock) as two:
        parent = one.open(Cause(kind="c", key="k", title="K?"), children=[Cause(kind="c", key="k:1", title="1?")])
        found = [
            one.open(Cause(kind="c", key="a:b", title="B?")),
            two.open(Cause(kind="c", key="b", title="B?")),
            one.open(Cause(kind="c", key="k:children", title="C?")),
            one.open(Cause(kind="c", key=f"u:under:{parent.id}", title="U?")),
            one.open(Cause(kind="c", key="u", title="U?"), parent=parent.id),
        ]

    assert len({thread.id for thread in found}) == 5
