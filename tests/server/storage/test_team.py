"""Profiles, agents, audit, traces and retention."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from reasonblocks.monitors.profile import MAX_RUNS
from reasonblocks_server.storage import Storage
from reasonblocks_server.values import ProfileRow, RunFilter
from tests.server.storage.model import finish, start, step

DAY = 86_400.0


def test_a_profile_changes_by_its_revision(storage: Storage) -> None:
    assert storage.profiles.put("o", "p", {"m": 1.0}, revision=5) is None
    first = storage.profiles.put("o", "p", {"m": 1.0}, revision=None)
    assert first == ProfileRow(name="p", weights={"m": 1.0}, revision=1)
    assert storage.profiles.get("o", "p") == first
    assert storage.profiles.put("o", "p", {}, revision=None) is None
    second = storage.profiles.put("o", "p", {}, revision=1)
    assert second == ProfileRow(name="p", weights={}, revision=2)
    assert storage.profiles.put("o", "p", {}, revision=1) is None
    assert storage.profiles.list("o") == [second]


@pytest.mark.parametrize("revision", [None, 1])
def test_of_two_who_change_a_profile_one_does(storage: Storage, revision: int | None) -> None:
    if revision:
        storage.profiles.put("o", "p", {}, revision=None)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: storage.profiles.put("o", "p", {"m": 1.0}, revision=revision), range(4)))
    assert sorted(one is None for one in done) == [False, True, True, True]


def test_an_agent_has_its_newest_runs(storage: Storage) -> None:
    for number in range(MAX_RUNS + 2):
        storage.agents.add("o", "a", "coding", f"r{number}", {"reached": [number]}, float(number))
    found = storage.agents.read("o", "a", "coding", "none")
    assert [one["reached"] for one in found] == [[number] for number in range(2, MAX_RUNS + 2)]
    storage.agents.add("o", "a", "coding", "r50", {"reached": [900]}, 900.0)
    assert storage.agents.read("o", "a", "coding", "r201")[-1] == {"reached": [900]}
    assert {"reached": [900]} not in storage.agents.read("o", "a", "coding", "r50")
    assert storage.agents.list("o") == [("", "a", "coding", MAX_RUNS, 900.0)]
    assert storage.agents.read("o", "a", "other", "") == []
    assert storage.agents.delete("o", "a", "coding")
    assert not storage.agents.delete("o", "a", "coding")


def test_the_audit_is_read_backwards(storage: Storage) -> None:
    for number in range(5):
        storage.audit.add("o", "k", "did\0", str(number), float(number))
    newest = storage.audit.list("o", limit=2)
    assert [(row.target, row.action, row.at) for row in newest] == [("4", "did\ufffd", 4.0), ("3", "did\ufffd", 3.0)]
    assert [row.target for row in storage.audit.list("o", limit=9, before=newest[-1].id)] == ["2", "1", "0"]


def test_traces_are_read_in_pages(storage: Storage) -> None:
    for name in ("b", "a/1", "c"):
        storage.traces.add("o", name, {"outcome": "success"}, 1.0)
    storage.traces.add("o", "b", {"outcome": "failure"}, 2.0)
    pages = [storage.traces.list("o", 2), storage.traces.list("o", 2, "b")]
    assert [[body["trace_id"] for body in page] for page in pages] == [["a/1", "b"], ["c"]]
    assert pages[0][1]["outcome"] == "failure"


def test_old_runs_are_swept(storage: Storage) -> None:
    storage.orgs.put("short", 1)
    storage.orgs.put("short", 2)
    assert storage.orgs.get("short") == {"org_id": "short", "retention_days": 2}
    for org in ("short", "default"):
        for age in (1, 5, 31):
            run = [start(f"{age}", 1.0), step(f"{age}", 0), finish(f"{age}")]
            storage.runs.ingest(org, run, now=(100 - age) * DAY)
            storage.traces.add(org, f"{age}", {}, (100 - age) * DAY)
    note = storage.notes.add("default", "31", "x", key_id="k", now=1.0, expires=9.0)
    assert storage.orgs.sweep(100 * DAY) == 3
    left = {org: sorted(row.run_id for row in storage.runs.list(org, RunFilter(), limit=9)[0]) for org in
            ("short", "default")}  # fmt: skip
    assert left == {"short": ["1"], "default": ["1", "5"]}
    assert [body["trace_id"] for body in storage.traces.list("default", 9)] == ["1", "5"]
    assert [body["trace_id"] for body in storage.traces.list("short", 9)] == ["1"]
    assert (storage.runs.steps("short", "5"), storage.notes.list("default", "31")) == ([], [])
    assert len(storage.runs.steps("default", "5")) == 1
    assert storage.notes.get("default", "31", note.note_id) is None
    assert storage.orgs.sweep(100 * DAY) == 0


def test_an_org_without_a_setting_has_that_of_the_server(storage: Storage, url: str) -> None:
    storage.runs.ingest("o", [step("r", 0)], now=1.0)
    other = Storage.open(url, retention_days=5)
    try:
        assert other.orgs.get("o")["retention_days"] == 5
        assert [other.orgs.sweep(now * DAY) for now in (4, 6)] == [0, 1]
    finally:
        other.close()


def test_many_old_runs_are_swept_at_once(storage: Storage) -> None:
    storage.runs.ingest("o", [step(f"r{number}", 0) for number in range(450)], now=1.0)
    assert storage.orgs.sweep(31 * DAY) == 450
    assert storage.runs.list("o", RunFilter(), limit=9) == ([], None)


def test_logins_and_notes_that_are_over_are_swept(storage: Storage) -> None:
    key, _ = storage.keys.add("o", name="n", scopes=["read"], now=1.0)
    token, link = storage.keys.login(key.key_id, expires=5.0), storage.keys.link(key.key_id, expires=5.0)
    storage.notes.add("o", "r", "x", key_id="k", now=1.0, expires=5.0)
    storage.orgs.sweep(6.0)
    assert storage.keys.login_key(token, 1.0) is None
    assert storage.keys.take_link(link, 1.0) is None
    assert [note.state for note in storage.notes.list("o", "r")] == ["expired"]
