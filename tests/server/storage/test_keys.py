"""Keys, logins and links are found by the hash of their secret, and expire in time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

from reasonblocks_server.storage import Storage
from reasonblocks_server.storage._tables import METADATA
from reasonblocks_server.values import SCOPES


def test_a_key_is_found_by_its_id(storage: Storage) -> None:
    row, secret = storage.keys.add("o", name="ci\0", scopes=["read", "ingest"], project_id="p", expires=9.0, now=1.0)
    prefix, key_id, rest = secret.split("_", 2)
    assert (prefix, key_id, row.key_id) == ("rbk", row.key_id, key_id)
    assert len(rest) >= 43
    assert storage.keys.find(key_id) == (row, sha256(rest.encode()).digest())
    assert (row.scopes, row.name, row.project_id) == (("ingest", "read"), "ci\ufffd", "p")
    assert storage.keys.find("x\0\ud800") is None


def test_no_secret_is_stored(storage: Storage) -> None:
    row, secret = storage.keys.add("o", name="n", scopes=SCOPES, now=1.0)
    secrets = [secret.split("_", 2)[2], storage.keys.login(row.key_id, expires=9), storage.keys.link("k", expires=9)]
    with storage._db.reading() as connection:
        rows = [repr(tuple(row)) for table in METADATA.sorted_tables for row in connection.execute(table.select())]
    assert not [row for row in rows for one in secrets if one in row]


def test_keys_are_listed_the_newest_first(storage: Storage) -> None:
    first, _ = storage.keys.add("o", name="1", scopes=["read"], now=1.0)
    second, _ = storage.keys.add("o", name="2", scopes=["read"], now=2.0)
    storage.keys.used([first.key_id, "none"], 5.0)
    storage.keys.used([], 6.0)
    assert [(key.key_id, key.used) for key in storage.keys.list("o")] == [(second.key_id, None), (first.key_id, 5.0)]


def test_a_key_is_revoked_once(storage: Storage) -> None:
    row, _ = storage.keys.add("o", name="n", scopes=["read"], now=1.0)
    token = storage.keys.login(row.key_id, expires=99.0)
    assert storage.keys.revoke("o", row.key_id, 5.0)
    assert not storage.keys.revoke("o", row.key_id, 6.0)
    assert [key.revoked for key in storage.keys.list("o")] == [5.0]
    assert storage.keys.login_key(token, 2.0) is None


def test_a_login_lasts_as_long_as_it_and_its_key(storage: Storage) -> None:
    row, _ = storage.keys.add("o", name="n", scopes=["read"], now=1.0, expires=50.0)
    token, longer = storage.keys.login(row.key_id, expires=10.0), storage.keys.login(row.key_id, expires=90.0)
    assert storage.keys.login_key(token, 9.0) == row
    assert storage.keys.login_key(token, 10.0) is None
    assert storage.keys.login_key(longer, 50.0) is None
    assert storage.keys.login_key("\ud800", 1.0) is None
    storage.keys.logout(longer)
    assert storage.keys.login_key(longer, 2.0) is None


def test_a_link_logs_in_once(storage: Storage) -> None:
    token, late = storage.keys.link("k", expires=10.0), storage.keys.link("k", expires=10.0)
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda _: storage.keys.take_link(token, 5.0), range(4)))
    assert sorted(taken, key=str) == [None, None, None, "k"]
    assert storage.keys.take_link(late, 10.0) is None
