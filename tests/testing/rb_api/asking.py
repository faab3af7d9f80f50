"""A plain client of the scripted rb-api, which shows an answer as it came."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from reasonblocks_testing.rb_api import KEY, ScriptedRbApi

Body = dict[str, Any]
TIMEOUT = 10.0
LOOP: Body = {
    "thought": "I run the tests once more.",
    "action": "run_tests",
    "action_input": '{"path": "tests"}',
    "observation": "3 failed: test_a, test_b, test_c",
    "observation_is_error": True,
}
"""A step in the flat form; repeated often enough, it is a loop."""


def connection(api: ScriptedRbApi, timeout: float = TIMEOUT) -> closing[HTTPConnection]:
    return closing(HTTPConnection(urlsplit(api.url).netloc, timeout=timeout))


def told(
    client: HTTPConnection, method: str, path: str, sent: bytes | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    client.request(method, path, sent, {"Authorization": f"Bearer {KEY}", **(headers or {})})
    response = client.getresponse()
    return response.status, response.read()


def ask(
    api: ScriptedRbApi, method: str, path: str, sent: bytes | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Any]:
    with connection(api) as client:
        status, received = told(client, method, path, sent, headers)
    return status, json.loads(received)


def post(api: ScriptedRbApi, path: str, body: object, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
    return ask(api, "POST", path, json.dumps(body).encode(), headers)


def evaluated(api: ScriptedRbApi, **body: Any) -> Body:
    """The answer to an evaluation of one more `LOOP`, unless the body has other steps."""
    status, answer = post(api, "/v1/monitors/evaluate", {"steps": [LOOP], "run_id": "run-1", **body})
    assert status == 200, answer
    found: Body = answer
    return found
