"""Answers the requests to a scripted rb-api: the routes, their checks, and their errors."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel, ValidationError

from reasonblocks import __version__
from reasonblocks.backends.profiles import ProfileMemory
from reasonblocks.exceptions import ConfigError, EventError, StoreFull
from reasonblocks.monitors.profile import summary_in
from reasonblocks.ports import Evaluator, FindingStore, PatternStore
from reasonblocks.types.outcomes import outcome_of
from reasonblocks.wire import (
    MOST_LISTED,
    PREFIX,
    EvaluateRequest,
    EventsRequest,
    EventsResponse,
    FindingsRequest,
    InvalidateRequest,
    RecallRequest,
    RetrieveRequest,
    ScoreRequest,
    WireRefused,
)
from reasonblocks_server.serving import (
    Evaluations,
    cleared,
    invalidated,
    listed,
    recalled,
    retrieved,
    scored,
    stored,
    summarised,
)

from ._records import Body, Received, Runs

MAX_BODY_BYTES = 5_000_000
"""The largest body, before it is unpacked."""
MAX_UNPACKED_BYTES = 8_000_000
MAX_LISTED = 200
RUNS = "/monitor/runs"
PROFILE = "/monitor/agents/profile"
FINDINGS = "/findings"
T = TypeVar("T", bound=BaseModel)


class Refused(Exception):
    """An error of the API: its HTTP status and its reason."""

    def __init__(self, status: int, detail: str) -> None:
        self.status, self.detail = status, detail
        super().__init__(detail)


def without_prefix(path: str) -> str:
    """Return the path of a route without the `/v1` before it."""
    return path.removeprefix(PREFIX) if path.startswith(f"{PREFIX}/") else path


def unpacked(sent: bytes, encoding: str) -> bytes:
    """Return the body without its gzip. Raises `Refused` for one that is too large, and for one that is not gzip."""
    if encoding != "gzip":
        return sent
    try:
        found = zlib.decompressobj(wbits=31).decompress(sent, MAX_UNPACKED_BYTES + 1)
    except zlib.error as exc:
        raise Refused(400, f"the body is not gzip: {exc}") from exc
    if len(found) > MAX_UNPACKED_BYTES:
        raise Refused(413, f"the body is larger than {MAX_UNPACKED_BYTES} bytes when it is unpacked")
    return found


def parsed(sent: bytes) -> Any:
    """Return the body as JSON; None for no body. Raises `Refused`."""
    if not sent:
        return None
    try:
        return json.loads(sent, parse_constant=_refuse_constant)
    except RecursionError as exc:
        raise Refused(422, "the body is nested too deeply") from exc
    except ValueError as exc:
        raise Refused(400, f"the body is not JSON: {exc}") from exc


def _refuse_constant(name: str) -> float:
    raise Refused(422, f"the body has the number {name}")


class Api:
    """The state of a scripted rb-api, and its answers, in any thread."""

    def __init__(
        self,
        keys: Mapping[str, str],
        store: PatternStore,
        evaluator: Evaluator | None,
        findings: FindingStore,
    ) -> None:
        self.keys, self.runs = dict(keys), Runs()
        self._store, self._findings = store, findings
        self._evaluations, self._profiles = Evaluations(evaluator), ProfileMemory()

    def forget(self) -> None:
        """Forget all events, notes and profiles."""
        self.runs.forget()
        self._profiles = ProfileMemory()

    def answer(self, request: Received) -> Body:
        """Return the body of the answer with status 200. Raises `Refused`."""
        if (request.method, request.path) == ("GET", "/health"):
            return {"status": "ok", "version": __version__}
        org = self._org(request.headers.get("authorization", ""))
        try:
            return self._routed(request, org)
        except ValidationError as exc:
            error = exc.errors()[0]
            raise Refused(422, f"{'.'.join(map(str, error['loc']))}: {error['msg']}") from exc
        except (ConfigError, EventError) as exc:
            raise Refused(422, str(exc)) from exc
        except StoreFull as exc:
            raise Refused(409, exc.reason) from exc

    def _org(self, authorization: str) -> str:
        kind, _, key = authorization.partition(" ")
        if kind.lower() != "bearer" or key.strip() not in self.keys:
            raise Refused(401, "the key is missing or not valid")
        return self.keys[key.strip()]

    def _routed(self, request: Received, org: str) -> Body:
        plain: Mapping[tuple[str, str], Callable[[Received, str], Body]] = {
            ("POST", "/monitors/evaluate"): self._evaluate,
            ("POST", "/traces/retrieve"): self._retrieve,
            ("POST", "/score"): self._score,
            ("POST", RUNS): self._start,
            ("GET", RUNS): self._list,
            ("POST", "/monitor/events"): self._events,
            ("GET", PROFILE): self._profile,
            ("POST", PROFILE): self._summary,
        }
        if route := plain.get((request.method, request.path)):
            return route(request, org)
        if request.path == FINDINGS or request.path.startswith(f"{FINDINGS}/"):
            return self._of_codebase(request, org)
        run, _, last = request.path.removeprefix(f"{RUNS}/").rpartition("/")
        if request.method == "POST" and run and request.path.startswith(f"{RUNS}/"):
            if last == "steps":
                return self._step(request, unquote(run))
            if last == "finish":
                return self._finish(request, unquote(run))
        raise Refused(404, f"{request.method} {request.path} is not served here")

    def _evaluate(self, request: Received, org: str) -> Body:
        asked = body_of(EvaluateRequest, request)
        notes = self.runs.waiting(asked.run_id, asked.notes_told) if asked.notes else ()
        return self._evaluations.answer(asked, notes=notes).model_dump()

    def _retrieve(self, request: Received, org: str) -> Body:
        return retrieved(self._store, body_of(RetrieveRequest, request), org=org).model_dump()

    def _score(self, request: Received, org: str) -> Body:
        return scored(body_of(ScoreRequest, request)).model_dump()

    def _start(self, request: Received, org: str) -> Body:
        event = self._add({"framework": "", **object_of(request), "org_id": org, "event": "run_start"})
        return {"run_id": event["run_id"]}

    def _step(self, request: Received, run_id: str) -> Body:
        event = self._add({**object_of(request), "run_id": run_id, "event": "step"})
        return {
            "scores": event.get("scores", {}),
            "total_score": event.get("composite", 0.0),
            "fired": event.get("monitors_fired", []),
        }

    def _finish(self, request: Received, run_id: str) -> Body:
        given = object_of(request)
        ended = {"outcome": outcome_of(given["outcome"])} if isinstance(given.get("outcome"), str) else {}
        event = self._add({**given, **ended, "run_id": run_id, "event": "run_finish"})
        return {"run_id": run_id, "outcome": event["outcome"]}

    def _add(self, event: Body) -> Body:
        """Add the event of a route that takes one; older clients send neither a time nor only known values."""
        given = {"timestamp": time.time(), **{name: value for name, value in event.items() if value is not None}}
        self.runs.add(given)
        return given

    def _events(self, request: Received, org: str) -> Body:
        answer = EventsResponse()
        for index, event in enumerate(body_of(EventsRequest, request).events):
            try:
                if self.runs.add(event):
                    answer.accepted += 1
                else:
                    answer.repeated += 1
            except EventError as exc:
                answer.refused.append(WireRefused(index=index, detail=str(exc)))
        return answer.model_dump()

    def _profile(self, request: Received, org: str) -> Body:
        agent = (org, request.query.get("agent_name", ""), request.query.get("task_profile", ""))
        return {"summaries": [dict(one) for one in self._profiles.read(agent, request.query.get("but", ""))]}

    def _summary(self, request: Received, org: str) -> Body:
        body = object_of(request)
        names = [body.get(name) for name in ("agent_name", "task_profile", "run_id")]
        summary = summary_in(body.get("summary"))
        if summary is None or not all(isinstance(name, str) and name for name in names):
            raise Refused(422, "summary, agent_name, task_profile, run_id: all must be given and valid")
        agent_name, task_profile, run_id = map(str, names)
        self._profiles.add((org, agent_name, task_profile), run_id, summary)
        return {"stored": True}

    def _of_codebase(self, request: Received, org: str) -> Body:
        """Answer a request for findings. The id of the codebase may contain "/", and end like a route if encoded."""
        given, store = request.path.removeprefix(FINDINGS).removeprefix("/"), self._findings
        name, _, last = given.rpartition("/")
        method = request.method
        if method == "GET" and not given:
            return summarised(store, org).model_dump()
        if method == "POST" and name and last == "search":
            return recalled(store, org, unquote(name), body_of(RecallRequest, request)).model_dump()
        if method == "POST" and name and last == "invalidate":
            return invalidated(store, org, unquote(name), body_of(InvalidateRequest, request)).model_dump()
        if method == "POST":
            now = datetime.now(timezone.utc)
            return stored(store, org, unquote(given), body_of(FindingsRequest, request), now).model_dump()
        if method == "GET":
            limit = limit_of(request, MOST_LISTED) if "limit" in request.query else None
            return listed(store, org, unquote(given), after=request.query.get("after", ""), limit=limit).model_dump()
        if method == "DELETE":
            return cleared(store, org, unquote(given)).model_dump()
        raise Refused(404, f"{method} {request.path} is not served here")

    def _list(self, request: Received, org: str) -> Body:
        return {"runs": self.runs.listed(limit_of(request, MAX_LISTED)), "next_cursor": None}


def limit_of(request: Received, most: int) -> int:
    """Return the limit in the query, 50 by default. Raises `Refused`."""
    given = request.query.get("limit", "50")
    limit = int(given) if given.isdecimal() and len(given) <= len(str(most)) else 0
    if not 1 <= limit <= most:
        raise Refused(422, f"limit: must be a whole number from 1 to {most}")
    return limit


def object_of(request: Received) -> Body:
    """Return the body, which has to be an object. Raises `Refused`."""
    if not isinstance(request.body, dict):
        raise Refused(400, "the body is not a JSON object")
    return request.body


def body_of(model: type[T], request: Received) -> T:
    """Return the body as a model. Raises `Refused` or `ValidationError`."""
    return model.model_validate(object_of(request))
