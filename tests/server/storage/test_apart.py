"""No method of an org reads or changes what belongs to another one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from reasonblocks_server.storage import Storage
from reasonblocks_server.storage._tables import METADATA
from reasonblocks_server.values import RunFilter
from tests.server.storage.model import finish, start, step

OF_THE_SERVER = {
    "runs.changed", "runs.unsummarised", "notes.waiting", "notes.expire", "orgs.sweep", "keys.find", "keys.used",
    "keys.refused", "keys.login", "keys.login_key", "keys.logout", "keys.link", "keys.take_link",
    "keys.ids", "keys.orgs",
}  # fmt: skip
"""The methods without an org: the server's own work, and keys, from which a caller's org is known."""
RUN = [start("r", 1.0, parent_run_id="p", agent_name="a", metadata={"experiment_id": "e"}), step("r", 0), finish("r")]
BODY = {"composite": 0.5}


def filled(storage: Storage, org: str) -> dict[str, str]:
    """Write an object of every kind for an org. Generated ids differ."""
    storage.runs.ingest(org, RUN, now=100.0)
    storage.orgs.put(org, 7)
    storage.profiles.put(org, "p", {"m": 1.0}, revision=None)
    storage.agents.add(org, "a", "coding", "r", BODY, 1.0)
    storage.audit.add(org, "k", "made", "x", 1.0)
    storage.traces.add(org, "t", {"outcome": org}, 1.0)
    key, _ = storage.keys.add(org, name=org, scopes=["read"], now=1.0)
    note = storage.notes.add(org, "r", "text", key_id="k", now=1.0, expires=9.0)
    return {"key": key.key_id, "note": note.note_id}


def calls(ids: dict[str, str]) -> dict[str, Callable[[Storage, str], Any]]:
    """A call of every method that names an org, with the ids of the other org's things."""
    note, key = ids["note"], ids["key"]
    return {
        "runs.ingest": lambda s, org: s.runs.ingest(org, [step("r", 5)], now=1.0),
        "runs.summarise": lambda s, org: s.runs.summarise(org, "r"),
        "runs.takes_notes": lambda s, org: s.runs.takes_notes(org, "r", 1.0),
        "runs.get": lambda s, org: s.runs.get(org, "r"),
        "runs.steps": lambda s, org: s.runs.steps(org, "r"),
        "runs.page": lambda s, org: s.runs.page(org, "r")[0],
        "runs.newest_steps": lambda s, org: s.runs.newest_steps(org, "r", limit=9),
        "runs.finish_body": lambda s, org: s.runs.finish_body(org, "r"),
        "runs.narrow": lambda s, org: s.runs.narrow(org, ["r"]),
        "runs.list": lambda s, org: s.runs.list(org, RunFilter(), limit=9)[0],
        "runs.children": lambda s, org: s.runs.children(org, "p"),
        "runs.choices": lambda s, org: [name for names in s.runs.choices(org).values() for name in names],
        "runs.health": lambda s, org: s.runs.health(org, since=0.0)["runs"],
        "runs.units": lambda s, org: s.runs.units(org, "e")[0],
        "runs.experiments": lambda s, org: s.runs.experiments(org),
        "runs.delete": lambda s, org: s.runs.delete(org, "r"),
        "notes.add": lambda s, org: s.notes.add(org, "r", "x", key_id="k", now=1.0, expires=9.0),
        "notes.list": lambda s, org: s.notes.list(org, "r"),
        "notes.get": lambda s, org: s.notes.get(org, "r", note),
        "notes.withdraw": lambda s, org: s.notes.withdraw(org, "r", note, 1.0),
        "notes.told": lambda s, org: s.notes.told(org, "r", [note], 1, 1.0),
        "keys.add": lambda s, org: s.keys.add(org, name="n", scopes=["read"], now=1.0),
        "keys.list": lambda s, org: s.keys.list(org),
        "keys.revoke": lambda s, org: s.keys.revoke(org, key, 1.0),
        "orgs.get": lambda s, org: s.orgs.get(org)["retention_days"] == 7,
        "orgs.put": lambda s, org: s.orgs.put(org, 3),
        "orgs.erase": lambda s, org: s.orgs.erase(org),
        "profiles.list": lambda s, org: s.profiles.list(org),
        "profiles.get": lambda s, org: s.profiles.get(org, "p"),
        "profiles.put": lambda s, org: s.profiles.put(org, "p", {"m": 2.0}, revision=1),
        "agents.read": lambda s, org: s.agents.read(org, "a", "coding", ""),
        "agents.add": lambda s, org: s.agents.add(org, "a", "coding", "r", {}, 2.0),
        "agents.list": lambda s, org: s.agents.list(org),
        "agents.delete": lambda s, org: s.agents.delete(org, "a", "coding"),
        "audit.add": lambda s, org: s.audit.add(org, "k", "x", "y", 2.0),
        "audit.list": lambda s, org: s.audit.list(org, limit=9),
        "traces.add": lambda s, org: s.traces.add(org, "t", {}, 2.0),
        "traces.list": lambda s, org: s.traces.list(org, 9),
    }


MAKES = {"runs.ingest", "runs.takes_notes", "notes.add", "keys.add", "traces.add"}
"""These make something for an org that has nothing, and return it."""
METHODS = sorted(calls({"note": "", "key": ""}))


def rows_of(storage: Storage, org: str) -> dict[str, list[Any]]:
    """Return all rows of an org."""
    with storage._db.reading() as connection:
        tables = [table for table in METADATA.sorted_tables if "org_id" in table.c]
        return {
            table.name: sorted(map(tuple, connection.execute(table.select().where(table.c.org_id == org))), key=repr)
            for table in tables
        }


def test_every_method_is_tried(sqlite: Storage) -> None:
    parts = [name for name, kind in vars(Storage.open("postgresql:///x")).items() if not name.startswith("_") and kind]
    methods = {
        f"{part}.{name}": method
        for part in parts
        for name, method in inspect.getmembers(type(vars(Storage.open("postgresql:///x"))[part]), inspect.isfunction)
        if not name.startswith("_")
    }
    with_org = {name for name, method in methods.items() if "org_id" in [*inspect.signature(method).parameters][1:2]}
    assert with_org == {*METHODS}
    assert methods.keys() - with_org == OF_THE_SERVER


def test_an_org_neither_sees_nor_changes_another_one(storage: Storage) -> None:
    ids = filled(storage, "theirs")
    before = rows_of(storage, "theirs")
    assert all(before.values()), "every table has a row of the org"
    for name, call in calls(ids).items():
        answer = call(storage, f"mine-{name}")
        assert rows_of(storage, "theirs") == before, name
        assert not answer or name in MAKES, name


def test_the_org_itself_does(storage: Storage) -> None:
    for name in METHODS:
        org = f"mine-{name}"
        ids = filled(storage, org)
        before = rows_of(storage, org)
        answer = calls(ids)[name](storage, org)
        assert answer or rows_of(storage, org) != before, name


def test_an_erased_org_leaves_no_row(storage: Storage) -> None:
    filled(storage, "mine")
    ids = filled(storage, "theirs")
    token = storage.keys.login(ids["key"], expires=9.0)
    kept = storage.keys.link(ids["key"], expires=9.0)
    assert storage.orgs.erase("mine") == 1
    assert not any(rows_of(storage, "mine").values())
    assert all(rows_of(storage, "theirs").values())
    assert storage.keys.login_key(token, 1.0) is not None
    assert storage.keys.take_link(kept, 1.0) is not None
