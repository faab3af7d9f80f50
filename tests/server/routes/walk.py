"""The routes of the OpenAPI document, with the scope of each, and a request to each that succeeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reasonblocks_server.values import Scope

Operation = tuple[str, str]
"""A method, and a path without its version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route: its scope, None for an open one, and the body and query of a request that succeeds."""

    scope: Scope | None
    body: Any = None
    query: str = ""


PATTERN = {
    "id": "pattern",
    "tier": "e2",
    "fields": {
        "trigger_state": {"trajectory_description": "MARK"},
        "diagnosis": "MARK",
        "intervention": "MARK",
        "anti_pattern": "MARK",
    },
    "failure_type": "loop",
}
COUNTS = {"reached": [3] * 7, "needless": [1] * 7, "checks": True}
KNOWN: Mapping[Operation, Route] = {
    ("GET", "/health"): Route(scope=None),
    ("GET", "/ready"): Route(scope=None),
    ("POST", "/monitors/evaluate"): Route(scope="evaluate", body={"steps": [{"thought": "t"}]}),
    ("POST", "/traces/retrieve"): Route(scope="evaluate", body={"tier": "e1", "context": "MARK"}),
    ("POST", "/score"): Route(scope="evaluate", body={"text": "t"}),
    ("POST", "/monitor/runs"): Route(scope="ingest", body={"run_id": "run", "task": "new"}),
    ("POST", "/monitor/runs/{run_id}/steps"): Route(scope="ingest", body={"step_index": 0}),
    ("POST", "/monitor/runs/{run_id}/finish"): Route(scope="ingest", body={"outcome": "success"}),
    ("POST", "/monitor/events"): Route(scope="ingest", body={"events": []}),
    ("GET", "/monitor/runs"): Route(scope="read"),
    ("GET", "/monitor/runs/{run_id}"): Route(scope="read"),
    ("DELETE", "/monitor/runs/{run_id}"): Route(scope="admin"),
    ("GET", "/monitor/health-summary"): Route(scope="read", query="?since=0"),
    ("GET", "/monitor/stream"): Route(scope="read", query="?run_id=run"),
    ("GET", "/monitor/scorers"): Route(scope="read"),
    ("GET", "/monitor/profiles"): Route(scope="read"),
    ("POST", "/monitor/profiles"): Route(scope="admin", body={"name": "profile", "revision": 1}),
    ("GET", "/monitor/agents"): Route(scope="read"),
    ("GET", "/monitor/agents/profile"): Route(scope="evaluate", query="?agent_name=agent"),
    ("POST", "/monitor/agents/profile"): Route(
        scope="ingest", body={"agent_name": "agent", "run_id": "run", "summary": COUNTS}
    ),
    ("DELETE", "/monitor/agents/profile"): Route(scope="admin", query="?agent_name=agent"),
    ("GET", "/monitor/experiments"): Route(scope="read"),
    ("GET", "/monitor/experiments/{experiment_id}/report"): Route(scope="read"),
    ("POST", "/runs/{run_id}/notes"): Route(scope="steer", body={"text": "new"}),
    ("GET", "/runs/{run_id}/notes"): Route(scope="read"),
    ("DELETE", "/runs/{run_id}/notes/{note_id}"): Route(scope="steer"),
    ("POST", "/traces"): Route(scope="ingest", body={"trace_id": "trace", "outcome": "new", "steps": []}),
    ("GET", "/traces"): Route(scope="read"),
    ("GET", "/patterns"): Route(scope="read"),
    ("POST", "/patterns"): Route(scope="admin", body=PATTERN),
    ("GET", "/patterns/{pattern_id}"): Route(scope="read"),
    ("PUT", "/patterns/{pattern_id}"): Route(scope="admin", body=PATTERN),
    ("DELETE", "/patterns/{pattern_id}"): Route(scope="admin"),
    ("GET", "/findings"): Route(scope="evaluate"),
    ("POST", "/findings/{codebase_id}/search"): Route(scope="evaluate", body={"query": "MARK"}),
    ("POST", "/findings/{codebase_id}/invalidate"): Route(scope="evaluate", body={"file_paths": ["a.py"]}),
    ("POST", "/findings/{codebase_id}"): Route(scope="evaluate", body={"content": "new"}),
    ("GET", "/findings/{codebase_id}"): Route(scope="evaluate"),
    ("DELETE", "/findings/{codebase_id}"): Route(scope="evaluate"),
    ("GET", "/keys"): Route(scope="admin"),
    ("POST", "/keys"): Route(scope="admin", body={"name": "new", "scopes": ["admin"]}),
    ("DELETE", "/keys/{key_id}"): Route(scope="admin"),
    ("GET", "/org"): Route(scope="admin"),
    ("PUT", "/org"): Route(scope="admin", body={"retention_days": 1}),
    ("DELETE", "/org"): Route(scope="admin"),
}
"""SERVER.md's table, and the additions to it."""


def operations(document: Mapping[str, Any]) -> set[Operation]:
    """Return the operations of the OpenAPI document."""
    return {
        (method.upper(), path.removeprefix("/v1")) for path, methods in document["paths"].items() for method in methods
    }
