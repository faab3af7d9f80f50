"""A note is queued until it is told, withdrawn, expired or unheard. The state told replaces the others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks_server.errors import ApiError
from reasonblocks_server.storage import Storage
from tests.server.storage.model import finish, step
from tests.whole import QUICK_EXAMPLES

ORGS = (f"notes-{number}" for number in count())
EXPIRES = 10.0
acts = st.tuples(
    st.sampled_from(["told", "step", "withdraw", "expire", "finish"]), st.integers(0, 4), st.sampled_from([5.0, 15.0])
)


def add(storage: Storage, org: str, now: float = 1.0, run: str = "r") -> str:
    return storage.notes.add(org, run, "Look at the logs.", key_id="k", now=now, expires=EXPIRES).note_id


@settings(max_examples=QUICK_EXAMPLES // 2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(done=st.lists(acts, max_size=6))
def test_a_note_goes_through_its_states(storage: Storage, done: list[tuple[str, int, float]]) -> None:
    org = next(ORGS)
    storage.runs.ingest(org, [step("r", 99)], now=1.0)
    note = add(storage, org)
    state, told = "queued", None
    for act, number, now in done:
        if act == "told":
            storage.notes.told(org, "r", [note, "none"], number, now)
        elif act == "step":
            storage.runs.ingest(org, [step("r", number, metadata={"note_ids": [note, 7, "none"]})], now=now)
        elif act == "withdraw":
            row = storage.notes.withdraw(org, "r", note, now)
            state = state if state != "queued" else "expired" if now >= EXPIRES else "withdrawn"
            assert row is not None
            assert row.state == state
        elif act == "expire":
            storage.notes.expire(now)
            state = "expired" if state == "queued" and now >= EXPIRES else state
        elif storage.runs.ingest(org, [finish("r")], now=now).finished:
            state = "unheard" if state == "queued" else state
        if act in ("told", "step"):
            state, told = "told", number if told is None else min(told, number)
        found = storage.notes.get(org, "r", note)
        assert found is not None
        assert (found.state, found.told_step) == (state, told)
        assert [one.note_id for one in storage.notes.waiting(5.0) if one.org_id == org] == (
            [note] if state == "queued" else []
        )


def test_a_note_that_is_told_before_the_end_of_its_batch_is_heard(storage: Storage) -> None:
    note = add(storage, "o")
    storage.runs.ingest("o", [finish("r"), step("r", 3, metadata={"note_ids": [note]})], now=2.0)
    assert [(one.state, one.told_step) for one in storage.notes.list("o", "r")] == [("told", 3)]


def test_a_run_has_three_waiting_notes_and_ten_in_all(storage: Storage) -> None:
    for number in range(10):
        if number >= 3:
            with pytest.raises(ApiError) as error:
                add(storage, "o")
            assert error.value.status == 429
            assert "waiting" in error.value.detail
            storage.notes.told("o", "r", [storage.notes.waiting(1.0)[0].note_id], None, 1.0)
        add(storage, "o", now=1.0 + number / 10)
    storage.notes.expire(EXPIRES)
    with pytest.raises(ApiError, match="10 notes"):
        add(storage, "o")
    add(storage, "o", run="another")


def test_an_expired_note_waits_no_longer(storage: Storage) -> None:
    add(storage, "o")
    assert storage.notes.waiting(EXPIRES) == []
    assert storage.notes.expire(EXPIRES - 0.1) == 0
    assert storage.notes.expire(EXPIRES) == 1


def test_people_who_write_at_once_share_the_limit(storage: Storage) -> None:
    storage.runs.ingest("o", [step("r", 0)], now=1.0)

    def write(_: int) -> int:
        try:
            add(storage, "o")
        except ApiError as error:
            return error.status
        return 201

    with ThreadPoolExecutor(8) as pool:
        answers = sorted(pool.map(write, range(8)))
    assert (len(storage.notes.waiting(1.0)), answers) == (3, [201] * 3 + [429] * 5)
