"""Each org has its own patterns beside the shared ones, and no change is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from reasonblocks.backends.local_store import LocalStore
from reasonblocks.patterns import pattern_of
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks.types import Pattern
from reasonblocks_server import Settings
from reasonblocks_server.errors import ApiError
from reasonblocks_server.patterns import Patterns
from tests.server.app.asking import LOOP, Body
from tests.server.running import Running, running
from tests.whole import in_whole


def lesson(name: str, **fields: Any) -> Body:
    given: Body = {"id": name, "tier": "e3", "fields": {"instruction": f"Follow {name}."}}
    return {**given, **fields}


@pytest.fixture
def globex(server: Running) -> Iterator[httpx.Client]:
    with server.client(server.make_key(org="globex")) as client:
        yield client


def ids(client: httpx.Client, **query: str) -> list[str]:
    found = client.get("/v1/patterns", params=query).raise_for_status().json()["patterns"]
    return [pattern["id"] for pattern in found]


def test_a_pattern_is_added_read_changed_and_removed(server: Running, client: httpx.Client) -> None:
    added = client.post("/v1/patterns", json=lesson("one"))
    assert added.status_code == 201
    assert [(one["id"], one["org_id"], one["revision"]) for one in added.json()["patterns"]] == [("one", "acme", 1)]
    assert "one" in ids(client)
    changed = client.put("/v1/patterns/one", json=lesson("one", off=True), headers={"If-Match": "1"})
    assert changed.headers["ETag"] == '"2"'
    assert client.get("/v1/patterns/one").json() == changed.json()
    assert changed.json()["off"]
    assert client.delete("/v1/patterns/one").status_code == 204
    assert client.get("/v1/patterns/one").status_code == 404
    actions = [(row.action, row.target) for row in server.server.storage.audit.list("acme", limit=3)]
    assert actions == [("pattern.delete", "one"), ("pattern.put", "one"), ("pattern.add", "one")]


@pytest.mark.parametrize("revision", [None, "", "3", '"3"', "x", "1 or 2", "-1"])
def test_a_change_of_another_revision_changes_nothing(client: httpx.Client, revision: str | None) -> None:
    client.post("/v1/patterns", json=lesson("kept"))
    headers = {} if revision is None else {"If-Match": revision}
    assert client.put("/v1/patterns/kept", json=lesson("kept", off=True), headers=headers).status_code == 412
    assert "off" not in client.get("/v1/patterns/kept").json()
    if revision:
        assert client.delete("/v1/patterns/kept", headers=headers).status_code == 412
        assert client.get("/v1/patterns/kept").status_code == 200


@pytest.mark.parametrize("revision", ["1", '"1"', 'W/"1"'])
def test_a_revision_may_be_an_entity_tag(client: httpx.Client, revision: str) -> None:
    client.delete("/v1/patterns/tagged")
    client.post("/v1/patterns", json=lesson("tagged"))
    headers = {"If-Match": revision}
    assert client.put("/v1/patterns/tagged", json=lesson("tagged", off=True), headers=headers).status_code == 200


def test_two_orgs_may_have_different_patterns_of_one_id(client: httpx.Client, globex: httpx.Client) -> None:
    client.post("/v1/patterns", json=lesson("both"))
    assert globex.post("/v1/patterns", json=lesson("both", off=True)).status_code == 201
    assert [one.get("/v1/patterns/both").json().get("off", False) for one in (client, globex)] == [False, True]
    assert [ids(one).count("both") for one in (client, globex)] == [1, 1]
    for number, one in enumerate((client, globex), start=1):
        headers = {"If-Match": "1"}
        assert one.put("/v1/patterns/both", json=lesson("both", off=number == 1), headers=headers).status_code == 200
    assert globex.delete("/v1/patterns/both").status_code == 204
    assert client.get("/v1/patterns/both").json()["off"]


def test_an_org_is_told_of_its_patterns_by_their_own_ids(client: httpx.Client, server: Running) -> None:
    client.post("/v1/patterns", json=lesson("found"))
    traces = client.post("/v1/traces/retrieve", json={"tier": "e3", "context": "", "top_k": 50}).json()["traces"]
    assert "found" in [trace["pattern_id"] for trace in traces]
    server.server.patterns.counts("acme").count(["found", "found", "unknown"], "retrieved")
    assert client.get("/v1/patterns/found").json()["stats"]["retrieved"] == 2


def test_a_pattern_that_was_stored_without_a_mark_stays_the_orgs(client: httpx.Client, server: Running) -> None:
    server.server.patterns.store.add([pattern_of({**lesson("older"), "org_id": "acme"})])
    assert "older" in ids(client)
    client.post("/v1/patterns", json=lesson("older", off=True))
    assert client.get("/v1/patterns/older").json()["off"]
    assert ids(client).count("older") == 1
    assert client.delete("/v1/patterns/older").status_code == 204
    assert client.get("/v1/patterns/older").status_code == 404


def test_a_shared_pattern_is_read_and_not_changed(client: httpx.Client) -> None:
    shared = starter_patterns()[0].id
    assert client.get(f"/v1/patterns/{shared}").json()["org_id"] is None
    assert client.put(f"/v1/patterns/{shared}", json=lesson(shared), headers={"If-Match": "1"}).status_code == 403
    assert client.delete(f"/v1/patterns/{shared}").status_code == 403
    assert client.post("/v1/patterns", json=lesson(shared)).status_code == 409


def test_an_org_named_in_the_body_is_not_believed(client: httpx.Client) -> None:
    for org in (None, "globex"):
        added = client.post("/v1/patterns", json=lesson("bound", org_id=org, revision=7, stats={"injected": 9}))
        found = added.json()["patterns"][0]
        assert (found["org_id"], found["revision"], found.get("stats")) == ("acme", 1, None)


def test_a_list_is_added_whole_or_not_at_all(server: Running, client: httpx.Client) -> None:
    many = [lesson(f"many-{number:03}") for number in range(300)]
    assert client.post("/v1/patterns", json=many).status_code == 201
    change = server.server.storage.audit.list("acme", limit=1)[0]
    assert (change.action, change.target[:30]) == ("pattern.add", "300 patterns: many-000, many-0")
    assert [name for name in ids(client, tier="e3") if name.startswith("many-")] == [one["id"] for one in many]
    wrong = client.post("/v1/patterns", json={"patterns": [lesson("half"), {"id": "other", "tier": "e9"}]})
    assert wrong.status_code == 422
    assert "tier" in wrong.json()["detail"]
    assert client.get("/v1/patterns/half").status_code == 404
    for bad in ([], [lesson("x")] * 1_001, ["text"], [None]):
        assert client.post("/v1/patterns", json=bad).status_code == 422


@pytest.mark.parametrize("name", ["a/b", "a%2Fb", "../x", "a?b#c", "ключ", "with space", "100%", "x/"])
def test_an_id_may_hold_any_character(client: httpx.Client, name: str) -> None:
    client.post("/v1/patterns", json=lesson(name)).raise_for_status()
    found = client.get(f"/v1/patterns/{quote(name, safe='')}")
    assert found.json()["id"] == name


def test_a_search_finds_the_org_s_own_lesson_and_no_other_s(client: httpx.Client, globex: httpx.Client) -> None:
    text = "The date is wrong again; I run the failing test of the parser."
    fields = {"observation": "The tests pin the clock to UTC.", "recommended_action": "Compare dates in UTC."}
    own = {"id": "clock", "tier": "e1", "fields": fields, "exemplars": [text]}
    client.post("/v1/patterns", json=own).raise_for_status()

    def found(by: httpx.Client) -> list[str]:
        body = {"tier": "e1", "texts": [text]}
        return [trace["pattern_id"] for trace in by.post("/traces/retrieve", json=body).json()["traces"]]

    assert found(client) == ["clock"]
    assert found(globex) == []


# --- a client that searches no lessons itself


def test_an_older_client_s_intervention_is_joined_with_a_lesson(tmp_path: Path) -> None:
    loop = {"diagnosis": "A loop.", "intervention": "Read the assertion before the next run.", "anti_pattern": "Again."}
    pattern = {"id": "loop", "tier": "e2", "fields": loop, "exemplars": [LOOP["thought"]], "gate_threshold": 0.1}
    with running(tmp_path) as server, server.client() as client:
        plain = client.post("/monitors/evaluate", json={"steps": [LOOP] * 6}).json()
        client.post("/v1/patterns", json=pattern).raise_for_status()
        joined = client.post("/monitors/evaluate", json={"steps": [LOOP] * 6}).json()
        itself = client.post("/monitors/evaluate", json={"steps": [LOOP] * 6, "injected": []}).json()
    assert plain["inject"]
    assert plain["intervention_source"] == "monitor"
    assert itself["intervention_text"] == plain["intervention_text"]
    assert (joined["intervention_source"], joined["pattern_id"]) == ("e2", "loop")
    assert "Read the assertion before the next run." in joined["intervention_text"]
    assert joined["intervention_text"].startswith(plain["fact"])


# --- many writers


@pytest.fixture
def patterns(tmp_path: Path) -> Iterator[Patterns]:
    made = Patterns(Settings(data=tmp_path))
    yield made
    made.close()


def test_of_changes_of_one_revision_one_succeeds(patterns: Patterns, tmp_path: Path) -> None:
    patterns.add("acme", [lesson("p")])
    other = Patterns(Settings(data=tmp_path))  # as another worker has it

    def change(number: int) -> int:
        try:
            store = patterns if number % 2 else other
            store.put("acme", "p", lesson("p", fields={"instruction": f"Version {number}."}), 1)
        except ApiError as error:
            return error.status
        return 200

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(change, range(24)))
    assert sorted(answers) == [200] + [412] * 23
    assert patterns.get("acme", "p").revision == 2
    other.close()


CHILD = """
import sys
from pathlib import Path
from reasonblocks_server import Settings
from reasonblocks_server.patterns import Patterns
patterns = Patterns(Settings(data=Path(sys.argv[1])))
for number in range(20):
    given = {"id": f"{sys.argv[2]}-{number}", "tier": "e3", "fields": {"instruction": "x"}}
    patterns.add("acme", [given])
    patterns.counts("acme").count(["shared", "unknown"], "injected")
patterns.close()
"""


@in_whole
def test_processes_that_write_one_file_lose_nothing(patterns: Patterns, tmp_path: Path) -> None:
    patterns.add("acme", [lesson("shared")])
    children = [subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path), str(name)]) for name in range(2)]
    assert [child.wait(60) for child in children] == [0, 0]
    names = [pattern.id for pattern in patterns.list("acme") if pattern.id[:2] in ("0-", "1-")]
    assert len(names) == 40
    assert patterns.get("acme", "shared").stats == {"injected": 40}


def test_counts_of_other_orgs_are_not_touched(patterns: Patterns) -> None:
    patterns.add("acme", [lesson("ours")])
    shared = starter_patterns()[0].id
    patterns.counts("globex").count(["ours", shared], "injected")
    assert patterns.get("acme", "ours").stats == {}
    assert patterns.get("acme", shared).stats == {"injected": 1}


def test_patterns_of_the_file_are_shared_if_they_have_no_org(patterns: Patterns, tmp_path: Path) -> None:
    LocalStore(tmp_path / "patterns.db", patterns=[Pattern(id="team", tier="e3", fields={"instruction": "x"})]).close()
    assert patterns.get("acme", "team").org_id is None
    with pytest.raises(ApiError) as refused:
        patterns.remove("acme", "team")
    assert refused.value.status == 403


@in_whole
def test_a_qdrant_that_does_not_answer_leaves_evaluations_alone(tmp_path: Path) -> None:
    pytest.importorskip("qdrant_client")
    with running(tmp_path, qdrant_url="http://127.0.0.1:9") as server, server.client() as client:
        found = client.post("/v1/traces/retrieve", json={"context": "x", "tier": "e2"})
        assert (found.status_code, found.headers["Retry-After"]) == (503, "1")
        assert client.get("/v1/patterns").status_code == 503
        older = client.post("/monitors/evaluate", json={"steps": [LOOP] * 6})
        assert older.status_code == 200
        assert older.json()["intervention_source"] == "monitor"
