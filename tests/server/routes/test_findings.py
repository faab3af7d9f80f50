"""The findings of codebases on a real server: the contract over HTTP, ids, keys, limits, and load."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote

import pytest

from reasonblocks.backends.http import Exchange, HttpFindings, address_of
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.findings import MOST_FINDINGS, finding_id
from reasonblocks.types import Codebase, Finding
from reasonblocks.util.secret import Secret
from reasonblocks_server.errors import ApiError
from reasonblocks_server.findings import Findings
from tests.core.memory.store_contract import HOME, NAMES, Maker, StoreContract
from tests.server.routes.world import Caller, World

HIDDEN = "hunter2-9fQx"
SECRET = f"The password is {HIDDEN}"


def place(codebase_id: str) -> str:
    """The path of a codebase, as our client sends it."""
    return f"/findings/{quote(codebase_id, safe='').replace('..', '%2E%2E')}"


def contents(caller: Caller, codebase_id: str = "shop") -> list[str]:
    return sorted(one["content"] for one in caller.get(place(codebase_id))["findings"])


class TestContract(StoreContract):
    @pytest.fixture
    def make(self, world: World) -> Iterator[Maker]:
        key, findings = world.caller("evaluate", org=HOME.org_id).key, world.server.findings
        usual = findings.store
        with ExitStack() as stack:

            def made(*, most: int = MOST_FINDINGS) -> HttpFindings:
                if most != MOST_FINDINGS:
                    limited = LocalFindings(world.server.settings.patterns_file, most=most)
                    findings.store = stack.enter_context(limited)
                found = HttpFindings(Exchange(address_of("base_url", world.url, Secret(key))))
                stack.callback(found.close)
                return found

            yield made
            findings.store = usual
            findings.erase(HOME.org_id)


# --- the bodies of other clients


def test_a_client_of_the_shared_contract_is_served(caller: Caller) -> None:
    stored = caller.post("/findings/shop", {"content": "Run tox.", "file_path": "tox.ini", "metadata": None, "x": 1})
    (listed,) = caller.get("/findings/shop")["findings"]
    assert listed["finding_id"] == stored["finding_id"]
    (found,) = caller.post("/findings/shop/search", {"query": "tox"})["results"]
    assert {"content", "file_path", "finding_type", "score", "metadata"} <= {*found}
    assert caller.post("/findings/shop/invalidate", {"file_paths": ["tox.ini"]}) == {"invalidated": 1}
    assert caller("DELETE", "/findings/shop").json()["status"] == "cleared"


def test_the_server_chooses_id_and_time(caller: Caller) -> None:
    given = {"content": "Run tox.", "finding_id": "mine", "created_at": "1970", "org_id": "other"}
    name = caller.post("/findings/shop", given)["finding_id"]
    scope = Codebase(org_id=caller.org_id, codebase_id="shop")
    assert name == finding_id(scope, Finding(content="Run tox."))
    (listed,) = caller.get("/findings/shop")["findings"]
    assert abs(time.time() - time.mktime(time.strptime(listed["created_at"], "%Y-%m-%dT%H:%M:%S+00:00"))) < 86_400


def test_secrets_are_masked_in_every_field(caller: Caller, world: World) -> None:
    metadata = {"password": HIDDEN, "deep": [{"note": SECRET}], SECRET: 1}
    body = {"content": SECRET, "file_path": f"etc/password={HIDDEN}/a", "finding_type": SECRET, "metadata": metadata}
    caller.post("/findings/shop", body)
    (listed,) = caller.get("/findings/shop")["findings"]
    assert HIDDEN not in str(listed)
    assert listed["file_path"].startswith("etc/")
    assert HIDDEN.encode() not in world.server.settings.patterns_file.read_bytes()
    assert caller.post("/findings/shop/invalidate", {"file_paths": [body["file_path"]]}) == {"invalidated": 1}


def test_a_list_without_a_limit_has_a_thousand_findings_and_the_next(caller: Caller) -> None:
    for batch in range(3):
        many = [{"content": f"Note {batch} {number}"} for number in range(350)]
        caller.post("/findings/shop", {"findings": many})
    first = caller.get("/findings/shop")
    rest = caller.get(f"/findings/shop?after={first['next']}")
    assert (len(first["findings"]), len(rest["findings"]), rest["next"]) == (1_000, 50, None)
    ids = [one["finding_id"] for one in first["findings"] + rest["findings"]]
    assert ids == sorted({*ids})
    assert caller.get("/findings") == {
        "codebases": [
            {"codebase_id": "shop", "findings": 1_050, "newest": caller.get("/findings")["codebases"][0]["newest"]}
        ]
    }


def test_a_page_with_a_limit_ends_at_200_kb(caller: Caller) -> None:
    caller.post("/findings/shop", {"findings": [{"content": f"{number} " + "é" * 7_900} for number in range(20)]})
    answer = caller("GET", "/findings/shop?limit=20")
    assert 180_000 < len(answer.content) < 210_000
    rest = caller.get(f"/findings/shop?limit=20&after={answer.json()['next']}")
    assert len(answer.json()["findings"]) + len(rest["findings"]) == 20
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("", {}, "content"), ("", {"content": " \n"}, "content"), ("", {"content": "x" * 8_001}, "content"),
        ("", {"content": "a\x00"}, "content"), ("", {"content": "a", "file_path": "x" * 513}, "file_path"),
        ("", {"content": "a", "file_path": "a\nb"}, "file_path"),
        ("", {"content": "a", "finding_type": ""}, "finding_type"),
        ("", {"content": "a", "finding_type": "x" * 65}, "finding_type"),
        ("", {"content": "a", "metadata": {"a": "x" * 4_001}}, "metadata"),
        ("", {"content": "a", "metadata": {"a": 2**70}}, "metadata"),
        ("", {"content": "a", "file_hash": "A" * 64}, "file_hash"), ("", {"findings": []}, "findings"),
        ("", {"findings": [{"content": "a"}] * 501}, "findings"),
        ("", {"content": "a", "findings": [{"content": "a"}]}, "findings"),
        ("", {"findings": [{"content": "a"}, {"content": "b\x00"}]}, "findings.1.content"),
        ("", {"findings": [{"content": "a"}, {"file_path": "b"}]}, "findings.1.content"),
        ("/search", {"query": ""}, "query"), ("/search", {"query": "x" * 2_001}, "query"),
        ("/search", {"query": "a", "top_k": 51}, "top_k"),
        ("/search", {"query": "a", "score_threshold": 1.5}, "score_threshold"),
        ("/invalidate", {"file_paths": ["x" * 513]}, "file_path"),
        ("/invalidate", {"file_paths": "a.py"}, "file_paths"), ("/invalidate", {"file_paths": ["./"]}, "file_paths"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_and_nothing_is_stored(
    caller: Caller, path: str, body: dict[str, Any], named: str
) -> None:
    answer = caller("POST", f"/findings/shop{path}", json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(named)
    assert contents(caller) == []


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=a", f"after={'x' * 513}"])
def test_a_page_has_limits(caller: Caller, query: str) -> None:
    assert caller("GET", f"/findings/shop?{query}").status_code == 422


# --- ids


@pytest.mark.parametrize("name", [*NAMES, "a/search", "a/invalidate", "invalidate", "../../org", "/", "keys"])
def test_an_encoded_id_is_the_whole_id(caller: Caller, name: str) -> None:
    caller.post(place(name), {"content": "tests", "file_path": "a.py"})
    caller.post(place(f"{name}x"), {"content": "Of another codebase."})
    assert contents(caller, name) == ["tests"]
    assert len(caller.post(f"{place(name)}/search", {"query": "tests"})["results"]) == 1
    assert caller.post(f"{place(name)}/invalidate", {"file_paths": ["a.py"]}) == {"invalidated": 1}
    assert [one["codebase_id"] for one in caller.get("/findings")["codebases"]] == [f"{name}x"]


def test_an_id_may_have_slashes_that_are_not_encoded(caller: Caller) -> None:
    caller.post("/findings/acme/shop", {"content": "tests"})
    assert contents(caller, "acme/shop") == ["tests"]
    assert len(caller.post("/findings/acme/shop/search", {"query": "tests"})["results"]) == 1
    caller.post("/findings/search", {"content": "Of a codebase with the name of a route."})
    assert len(contents(caller, "search")) == 1


@pytest.mark.parametrize(("path", "status"), [("/findings/", 422), ("/findings//search", 422), ("/findings/%FF", 400),
                                              ("/findings/%00", 422), ("/findings/%0A", 422),
                                              (f"/findings/{'x' * 513}", 422)])  # fmt: skip
def test_an_id_that_is_none_is_refused(caller: Caller, path: str, status: int) -> None:
    assert caller("POST", path, json={"content": "a", "query": "a"}).status_code == status


# --- keys and orgs


def test_a_key_of_a_project_reads_and_does_not_change(world: World, caller: Caller) -> None:
    caller.post("/findings/shop", {"content": "tests"})
    one = world.caller("evaluate", org=caller.org_id, project="p")
    assert contents(one) == ["tests"]
    assert len(one.post("/findings/shop/search", {"query": "tests"})["results"]) == 1
    changes = [
        one("POST", "/findings/shop", json={"content": "a"}),
        one("POST", "/findings/shop/invalidate", json={"file_paths": [""]}),
        one("DELETE", "/findings/shop"),
    ]
    assert [answer.status_code for answer in changes] == [403] * 3
    assert contents(caller) == ["tests"]


def test_removals_are_audited_and_stores_are_not(world: World, caller: Caller) -> None:
    caller.post("/findings/shop", {"findings": [{"content": str(number), "file_path": "a"} for number in range(3)]})
    caller.post("/findings/shop/invalidate", {"file_paths": ["other"]})
    caller.post("/findings/shop/invalidate", {"file_paths": ["a"]})
    caller.post("/findings/shop", {"content": "a"})
    caller("DELETE", "/findings/shop")
    rows = world.server.storage.audit.list(caller.org_id, limit=10)
    assert sorted((row.action, row.target) for row in rows) == [
        ("finding.clear", "shop: 1 finding"),
        ("finding.invalidate", "shop: 3 findings"),
    ]


# --- load


def test_many_clients_store_at_once(caller: Caller) -> None:
    def work(number: int) -> None:
        for turn in range(5):
            caller.post("/findings/shop", {"content": f"Note {number} {turn}", "file_path": f"src/{number}.py"})
            caller.post("/findings/shop/search", {"query": f"Note {number}"})
        caller.post("/findings/shop/invalidate", {"file_paths": [f"src/{number}.py"]} if number % 2 else {})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(contents(caller)) == 20


def test_a_search_ends_at_the_client_s_deadline(world: World) -> None:
    async def asked() -> None:
        with pytest.raises(ApiError, match="503") as raised:
            await findings.read("o", lambda store: gate.result(), time.monotonic() + 0.05)
        assert raised.value.headers == {"Retry-After": "1"}

    findings = Findings(world.server.settings, world.server.patterns.store)
    gate: Future[None] = Future()
    asyncio.run(asked())
    gate.set_result(None)
    findings.close()
