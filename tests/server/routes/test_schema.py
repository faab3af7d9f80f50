"""Every answer to a generated request conforms to the OpenAPI document, and none is an error of the server.

`reasonblocks.testing` has the cases that were thought of; these are made by Schemathesis from the document itself.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import load_all_checks
from tests.server.routes.world import World, start
from tests.whole import WHOLE

EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", 50 if WHOLE else 4))
"""Requests to each route."""
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


@pytest.fixture(scope="session")
def document(world: World) -> Any:
    """The document without the stream, whose answer does not end."""
    found = schemathesis.openapi.from_url(f"{world.url}/openapi.json")
    return found.exclude(path="/v1/monitor/stream")


schema = schemathesis.pytest.from_fixture("document")


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_conform_to_the_document(world: World, case: Any) -> None:
    caller = world.caller() if "erase" in case.operation.definition.raw["operationId"] else _caller(world)
    case.headers = {**(case.headers or {}), "Authorization": f"Bearer {caller.key}"}
    case.call_and_validate(checks=[check for check in load_all_checks() or () if check.__name__ in CHECKS])


def _caller(world: World) -> Any:
    """Return a caller whose org has a run with the id that is the simplest to generate."""
    caller = world.caller()
    caller.send(start("0"))
    return caller
