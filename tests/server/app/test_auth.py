"""Keys identify their caller, are cached for a while, and have a rate limit. The clock is moved by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks_server import Settings
from reasonblocks_server.auth import GRACE_S, KNOWN_S, LISTED_S, LOOKUP_BURST, REFRESH_S, Auth, Bucket
from reasonblocks_server.errors import ApiError, StorageUnavailable
from reasonblocks_server.storage import Storage
from reasonblocks_server.values import Principal, Scope


class World:
    """Keys in a database of a folder, and a clock that is moved by hand."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.file = folder / "server.db"
        self.now = 1_000.0
        self.settings = Settings(data=folder, **settings)
        self.storage = Storage.open(self.settings.database)
        self.storage.migrate()
        self.auth = Auth(self.settings, self.storage, monotonic=lambda: self.now)

    def key(self, *scopes: Scope, **options: Any) -> tuple[str, str]:
        """Make a key, and return its id and its text."""
        row, text = self.storage.keys.add("acme", name="k", scopes=scopes or ("read",), now=time.time(), **options)
        return row.key_id, text

    def lose_database(self) -> None:
        self.file.rename(self.file.with_suffix(".gone"))

    def settle(self) -> None:
        """Wait for the lookups in the background."""
        self.auth.close()

    def drain(self) -> None:
        """Wait until all is done that was begun in the background."""
        self.auth._background.submit(int).result()

    def close(self) -> None:
        self.auth.close()
        self.storage.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, static_keys=("plain-key-of-tests", "other-key-of-tests@globex"))
    yield made
    made.close()


def status_of(auth: Auth, key: str) -> int:
    try:
        auth.check(key)
    except ApiError as error:
        return error.status
    return 200


def test_a_key_names_its_org_project_and_scopes(world: World) -> None:
    key_id, key = world.key("read", "steer", project_id="p1")
    expected = Principal(org_id="acme", key_id=key_id, scopes=frozenset({"read", "steer"}), project_id="p1")
    assert world.auth.check(key) == expected


def test_static_keys_may_send_evaluate_and_read(world: World) -> None:
    plain, other = world.auth.check("plain-key-of-tests"), world.auth.check("other-key-of-tests")
    assert (plain.org_id, other.org_id) == ("default", "globex")
    assert plain.scopes == other.scopes == {"ingest", "evaluate", "read"}
    assert plain.key_id != other.key_id


@pytest.mark.parametrize("text", ["", "rbk_", "rbk__", "rbk_x", "rbk_a_b", "plain ", "rbk_ö_x", "x" * 10_000, "\ud800"])
def test_anything_else_is_refused(world: World, text: str) -> None:
    assert status_of(world.auth, text) == 401


def test_the_secret_is_compared_and_not_only_the_id(world: World) -> None:
    key_id, key = world.key()
    assert status_of(world.auth, key) == 200
    assert status_of(world.auth, f"rbk_{key_id}_guess") == 401
    assert status_of(world.auth, key + "x") == 401


def test_an_expired_key_is_refused(world: World) -> None:
    assert status_of(world.auth, world.key(expires=time.time() - 1)[1]) == 401
    assert status_of(world.auth, world.key(expires=time.time() + 60)[1]) == 200


def test_a_revoked_key_is_refused_after_its_time_in_the_cache(world: World) -> None:
    key_id, key = world.key()
    assert status_of(world.auth, key) == 200
    world.storage.keys.revoke("acme", key_id, time.time())
    world.now += KNOWN_S
    assert status_of(world.auth, key) == 200
    world.now += REFRESH_S + 1
    assert status_of(world.auth, key) == 401


def test_a_busy_key_is_looked_up_while_its_requests_are_answered(world: World) -> None:
    key_id, key = world.key()
    assert status_of(world.auth, key) == 200
    world.storage.keys.revoke("acme", key_id, time.time())
    world.now += KNOWN_S + 1
    assert status_of(world.auth, key) == 200  # by what is known; the lookup runs beside it
    world.settle()
    assert status_of(world.auth, key) == 401


def test_an_unknown_key_is_remembered_too_until_it_is_forgotten(world: World) -> None:
    assert status_of(world.auth, "rbk_new_secret") == 401
    world.lose_database()
    assert status_of(world.auth, "rbk_new_secret") == 401
    world.auth.forget("new")
    with pytest.raises(StorageUnavailable):
        world.auth.check("rbk_new_secret")


def test_known_keys_outlive_the_database_for_five_minutes(world: World) -> None:
    _, key = world.key()
    _, unknown = world.key()
    assert status_of(world.auth, key) == 200
    world.lose_database()
    with pytest.raises(StorageUnavailable):
        world.auth.check(unknown)
    for seconds in (KNOWN_S + REFRESH_S + 1, GRACE_S - KNOWN_S - REFRESH_S - 2):
        world.now += seconds
        assert status_of(world.auth, key) == 200
    world.now += 2
    with pytest.raises(StorageUnavailable):
        world.auth.check(key)
    assert status_of(world.auth, "plain-key-of-tests") == 200


def test_keys_that_exist_are_looked_up_however_many_they_are(world: World) -> None:
    keys = [world.key()[1] for _ in range(LOOKUP_BURST + 10)]
    assert {status_of(world.auth, key) for key in keys} == {200}


def test_each_worker_gives_a_key_its_share_of_the_rate(tmp_path: Path) -> None:
    world = World(
        tmp_path, static_keys=("first-key-of-tests", "second-key-of-tests"), rate_per_second=4, burst=6, workers=2
    )
    one, two = world.auth.check("first-key-of-tests"), world.auth.check("second-key-of-tests")
    for _ in range(3):
        world.auth.take(one)
    with pytest.raises(ApiError) as refused:
        world.auth.take(one)
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "1"})
    world.auth.take(two)
    world.now += 0.5
    world.auth.take(one)
    with pytest.raises(ApiError):
        world.auth.take(one)
    world.close()


@given(rate=st.floats(0.1, 1000), burst=st.integers(1, 50), pauses=st.lists(st.floats(0, 2), min_size=1, max_size=100))
def test_a_bucket_gives_no_more_than_its_rate_and_says_when_it_gives_again(
    rate: float, burst: int, pauses: list[float]
) -> None:
    now, taken = 0.0, 0
    bucket = Bucket(rate, burst, now)
    for pause in pauses:
        now += pause
        wait = bucket.take(now)
        taken += wait == 0.0
        assert taken <= burst + rate * now + 1e-6
        if wait:
            assert bucket.take(now + wait * 0.9) > 0 or wait * rate < 1e-6
            now += wait * 1.001 + 1e-9
            assert bucket.take(now) == 0.0
            taken += 1


def refused_at(world: World, key_id: str) -> float | None:
    (row,) = [row for row in world.storage.keys.list("acme") if row.key_id == key_id]
    return row.refused


def test_a_refusal_is_written_down_and_a_good_request_is_not(world: World) -> None:
    good, text = world.key()
    guessed, _ = world.key()
    assert status_of(world.auth, text) == 200
    assert status_of(world.auth, f"rbk_{guessed}_wrong") == 401
    world.drain()
    assert (refused_at(world, good), refused_at(world, guessed) is not None) == (None, True)


def test_the_refusals_of_a_key_are_written_down_once_in_a_while(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    key_id, _ = world.key()
    written: list[str] = []
    monkeypatch.setattr(world.storage.keys, "refused", lambda name, now: written.append(name))
    for seconds in (0, 1, KNOWN_S - 2, 2, 1):
        world.now += seconds
        assert status_of(world.auth, f"rbk_{key_id}_wrong") == 401
    world.drain()
    assert written == [key_id, key_id]


def test_guesses_lock_out_no_key_that_exists(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = list[float]()
    ids = world.storage.keys.ids

    def counted() -> tuple[str, ...]:
        reads.append(world.now)
        return ids()

    monkeypatch.setattr(world.storage.keys, "ids", counted)
    keys = [world.key()[1] for _ in range(3)]
    answers = [status_of(world.auth, f"rbk_guess{number}_x") for number in range(LOOKUP_BURST + 10)]
    assert answers == [401] * LOOKUP_BURST + [429] * 10
    assert [status_of(world.auth, key) for key in keys] == [200, 200, 200]
    world.now += 1
    assert status_of(world.auth, "rbk_later_x") == 401
    world.now += LISTED_S - 1
    _, new = world.key()
    for number in range(200):
        status_of(world.auth, f"rbk_more{number}_x")
    world.now += LISTED_S
    assert status_of(world.auth, new) == 200
    assert len(reads) <= 4
