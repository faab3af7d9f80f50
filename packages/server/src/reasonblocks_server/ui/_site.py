"""Lists the addresses of the dashboard, with the scope that each needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ..findings import CHANGING
from ..values import Scope
from . import _agents, _counts, _door, _experiments, _glossary, _memory, _org, _patterns, _run, _runs, _threads
from ._pages import HEADERS, failure_page, static
from ._paths import EXPERIMENTS, HOME, MEMORY, PATTERNS, RUNS, THREADS, id_in
from ._stream import stream
from ._visit import Handler, Refusal, Visit, endpoint

OfOne: TypeAlias = Callable[..., Response]
"""A page of one object, by its id and the segments after it."""
PAGES: tuple[tuple[str, str, Handler, Scope | None], ...] = (
    ("GET", "/ui/login", _door.login_page, None),
    ("POST", "/ui/login", _door.log_in, None),
    ("GET", "/ui/link/{link}", _door.link_page, None),
    ("POST", "/ui/link/{link}", _door.follow_link, None),
    ("POST", "/ui/logout", _door.log_out, "read"),
    ("GET", HOME, _runs.runs, "read"),
    ("GET", "/ui/health", _counts.health, "read"),
    ("GET", "/ui/words", _glossary.words, "read"),
    ("GET", "/ui/patterns", _patterns.patterns, "read"),
    ("GET", "/ui/new-pattern", _patterns.new, "admin"),
    ("POST", "/ui/new-pattern", _patterns.add, "admin"),
    ("GET", "/ui/memory", _memory.codebases, "read"),
    ("GET", "/ui/experiments", _experiments.experiments, "read"),
    ("GET", "/ui/threads", _threads.threads, "read"),
    ("GET", "/ui/agents", _agents.agents, "read"),
    ("GET", "/ui/agents/one", _agents.agent, "read"),
    ("POST", "/ui/agents/one", _agents.delete, "admin"),
    ("GET", "/ui/keys", _org.show_keys, "admin"),
    ("POST", "/ui/keys", _org.make_key, "admin"),
    ("POST", "/ui/keys/revoke", _org.revoke_key, "admin"),
    ("GET", "/ui/audit", _org.audit, "admin"),
    ("GET", "/ui/org", _org.org, "admin"),
    ("POST", "/ui/org", _org.save_org, "admin"),
)
OF_ONE: Mapping[tuple[str, str, str], tuple[OfOne, int, Scope]] = {
    ("GET", RUNS, ""): (_run.show, 0, "read"),
    ("GET", RUNS, "json"): (_run.as_json, 0, "read"),
    ("GET", RUNS, "text"): (_run.whole_text, 2, "read"),
    ("POST", RUNS, "notes"): (_run.tell, 0, "steer"),
    ("POST", RUNS, "withdraw"): (_run.withdraw, 1, "steer"),
    ("POST", RUNS, "delete"): (_run.delete, 0, "admin"),
    ("GET", PATTERNS, ""): (_patterns.pattern, 0, "read"),
    ("POST", PATTERNS, ""): (_patterns.save, 0, "admin"),
    ("POST", PATTERNS, "switch"): (_patterns.switch, 0, "admin"),
    ("POST", PATTERNS, "delete"): (_patterns.delete, 0, "admin"),
    ("GET", MEMORY, ""): (_memory.codebase, 0, "read"),
    ("POST", MEMORY, "forget"): (_memory.forget, 0, CHANGING),
    ("POST", MEMORY, "clear"): (_memory.clear, 0, CHANGING),
    ("GET", EXPERIMENTS, ""): (_experiments.experiment, 0, "read"),
    ("GET", THREADS, ""): (_threads.thread, 0, "read"),
    ("POST", THREADS, "answer"): (_threads.answer, 0, "steer"),
}
"""Pages of one object, by the method, the base path and the segment after the id. With the number of later segments."""


def _of_one(base: str) -> Handler:
    """Return the handler of all paths under a base path. The first segment is the id, with any characters."""

    def handler(visit: Visit) -> Response:
        raw: bytes = visit.request.scope.get("raw_path") or visit.request.url.path.encode()
        if raw.decode("latin-1") == base:
            return RedirectResponse(HOME if base == RUNS else base.rstrip("/"), status_code=303, headers=HEADERS)
        id, rest = id_in(base, raw.decode("latin-1"))
        method = "GET" if visit.request.method == "HEAD" else visit.request.method
        found = OF_ONE.get((method, base, rest[0] if rest else ""))
        if found is None or len(rest[1:]) != found[1]:
            raise _missing()
        act, _, scope = found
        visit.needs(scope)
        return act(visit, id, *rest[1:])

    return handler


def _missing() -> Refusal:
    return Refusal(404, "No such page", "The dashboard has no page at this address.")


def _nothing(visit: Visit) -> Response:
    raise _missing()


async def _home(request: Request) -> Response:
    return RedirectResponse(HOME, status_code=303, headers=HEADERS)


async def _static(request: Request) -> Response:
    return static(request.path_params["name"])


def _routes() -> list[Route]:
    pages = [
        Route(path, endpoint(act, failure_page, scope=scope), methods=[method]) for method, path, act, scope in PAGES
    ]
    ones = [
        Route(base + "{rest:path}", endpoint(_of_one(base), failure_page), methods=["GET", "POST"])
        for base in (RUNS, PATTERNS, MEMORY, EXPERIMENTS, THREADS)
    ]
    return [
        Route("/", _home, methods=["GET"]),
        Route("/ui", _home, methods=["GET"]),
        Route("/ui/runs", _home, methods=["GET"]),
        Route("/ui/static/{name}", _static, methods=["GET"]),
        Route("/ui/stream", stream, methods=["GET"]),
        *pages,
        *ones,
        Route("/ui/{rest:path}", endpoint(_nothing, failure_page), methods=["GET", "POST"]),
    ]


router = APIRouter(routes=[*_routes()], include_in_schema=False)
"""The pages, with absolute addresses."""
