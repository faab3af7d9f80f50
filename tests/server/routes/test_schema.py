"""Every answer to a generated request conforms to the OpenAPI document, and none is a server error."""

from __future__ import annotations

import os
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.routes.walk import KNOWN, Operation
from tests.server.routes.world import Caller, World, start
from tests.whole import WHOLE

EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", 50 if WHOLE else 4))
"""Requests to each route."""
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
ENDLESS = ("GET", "/monitor/stream")
ERASE = ("DELETE", "/org")
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def document(world: World) -> Any:
    return schemathesis.openapi.from_url(f"{world.url}/openapi.json")


@pytest.fixture(scope="module")
def busy(world: World) -> Caller:
    """A caller whose org has a run with the id that is the simplest to generate."""
    caller = world.caller()
    caller.send(start("0"))
    return caller


@pytest.mark.parametrize("operation", [one for one in KNOWN if one != ENDLESS], ids=" ".join)
def test_answers_conform_to_the_document(world: World, document: Any, busy: Caller, operation: Operation) -> None:
    method, path = operation
    found = document[f"/v1{path}"][method]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of([found.as_strategy(generation_mode=mode) for mode in MODES]))
    def conforms(case: Any) -> None:
        caller = world.caller() if operation == ERASE else busy
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {caller.key}"}
        case.call_and_validate(checks=CHECKS)

    conforms()
