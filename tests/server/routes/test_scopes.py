"""Each route needs a key with the scope of its row in the table."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reasonblocks_server.values import SCOPES, Scope
from tests.server.routes.walk import KNOWN, Operation, operations
from tests.server.routes.world import Caller, World

ERASE = ("DELETE", "/org")
PLACES = {"run_id": "none", "note_id": "none", "key_id": "none", "pattern_id": "none", "experiment_id": "none",
          "codebase_id": "none"}  # fmt: skip


def asked(caller: Caller, operation: Operation) -> int:
    """Return the status of a request without a body for things that do not exist."""
    method, path = operation
    route = KNOWN[operation]
    query = route.query.replace("run_id=run", "run_id=none")
    return caller(method, f"{path.format(**PLACES)}{query}").status_code


def test_the_table_has_all_routes(world: World) -> None:
    assert operations(world.http.get("/openapi.json").json()) == set(KNOWN)


@pytest.fixture(scope="module")
def callers(world: World) -> Mapping[Scope, Caller]:
    """A caller with each scope alone."""
    return {scope: world.caller(scope) for scope in SCOPES}


@pytest.mark.parametrize("operation", [one for one in KNOWN if one != ERASE], ids=" ".join)
def test_a_route_allows_its_own_scope_only(callers: Mapping[Scope, Caller], operation: Operation) -> None:
    wanted = KNOWN[operation].scope
    for scope, caller in callers.items():
        status = asked(caller, operation)
        assert (status != 403) == (wanted in (None, scope)), scope
        assert status < 500, scope
        assert status not in (401, 429), scope


def test_only_an_admin_erases_an_org(world: World) -> None:
    org = world.caller().org_id
    assert [asked(world.caller(scope, org=org), ERASE) for scope in SCOPES] == [403, 403, 403, 403, 200]


@pytest.mark.parametrize("key", ["_", "rbk_0123_0123", "static"])
def test_a_request_without_a_known_key_is_refused(world: World, key: str) -> None:
    nobody = Caller(world.http, key, "", "")
    for operation, route in KNOWN.items():
        assert asked(nobody, operation) == (200 if route.scope is None else 401), operation
