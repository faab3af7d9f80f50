"""Serves the OpenAPI document, and a page that shows it without scripts and without requests to other hosts."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

router = APIRouter(include_in_schema=False)
OPEN_TAGS = {"health"}
"""The tags of routes that need no key."""
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
section { border-top: 1px solid; padding: .5rem 0 1rem; }
h2 { font-size: 1.1rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid #8888; }
pre { overflow: auto; }
"""
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
CSP = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_PAGE = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
    """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{{ title }} {{ version }}</title>
<meta name="viewport" content="width=device-width"><style>{{ style }}</style></head>
<body>
<main>
<h1>{{ title }} {{ version }}</h1>
<p>Every route is served with and without <code>/v1</code>. Send a key as <code>Authorization: Bearer KEY</code>.
Errors are <code>{"detail": reason}</code>. The same description as <a href="/openapi.json">OpenAPI</a>.</p>
{% for route in routes %}
<section>
<h2><code>{{ route.method }} {{ route.path }}</code></h2>
<p>{{ route.summary }}{% if route.scopes %} Scope: <code>{{ route.scopes|join(", ") }}</code>.{% endif %}</p>
{% if route.parameters %}
<table>
<thead><tr><th scope="col">parameter</th><th scope="col">in</th><th scope="col">type</th></tr></thead>
<tbody>
{% for name, place, kind in route.parameters %}
<tr><td><code>{{ name }}</code></td><td>{{ place }}</td><td><code>{{ kind }}</code></td></tr>
{% endfor %}
</tbody>
</table>
{% endif %}
{% if route.body %}
<details><summary>body</summary><pre tabindex="0">{{ route.body }}</pre></details>
{% endif %}
{% if route.answer %}
<details><summary>answer</summary><pre tabindex="0">{{ route.answer }}</pre></details>
{% endif %}
</section>
{% endfor %}
</main>
</body>
</html>
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Route:
    """A route on the page."""

    method: str
    path: str
    summary: str
    scopes: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str, str], ...] = ()
    body: str = ""
    answer: str = ""


@router.get("/openapi.json")
async def openapi(request: Request) -> Response:
    """Return the OpenAPI document."""
    return JSONResponse(document_of(request.app))


@router.get("/docs")
async def docs(request: Request) -> Response:
    """Return the page."""
    document = document_of(request.app)
    given = {"routes": list(_routes(document)), "style": STYLE, **document["info"]}
    return HTMLResponse(_PAGE.render(given), headers={"Content-Security-Policy": CSP})


def document_of(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document. All routes except the health checks need a key, with the scope of the route."""
    known: dict[str, Any] | None = getattr(app.state, "document", None)
    if known is None:
        known = app.openapi()
        schemes = known.setdefault("components", {}).setdefault("securitySchemes", {})
        schemes["key"] = {"type": "http", "scheme": "bearer", "description": "rbk_ID_SECRET, or a static key"}
        for method, path, operation in _operations(known):
            if not OPEN_TAGS & {*operation.get("tags", ())}:
                operation["security"] = [{"key": app.state.scopes.get((method.upper(), path), [])}]
        app.state.document = known
    return known


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _routes(document: Mapping[str, Any]) -> Iterator[_Route]:
    for method, path, operation in _operations(document):
        answers = operation.get("responses", {})
        good: Mapping[str, Any] = next((answer for status, answer in answers.items() if status.startswith("2")), {})
        yield _Route(
            method=method.upper(),
            path=path,
            summary=operation.get("description") or operation.get("summary", ""),
            scopes=tuple(scope for needed in operation.get("security", ()) for scope in needed["key"]),
            parameters=tuple(
                (given["name"], given["in"], _kind(given.get("schema", {})))
                for given in operation.get("parameters", ())
            ),
            body=_schema(operation.get("requestBody", {}), document),
            answer=_schema(good, document),
        )


def _kind(schema: Mapping[str, Any]) -> str:
    options = [_kind(one) for one in schema.get("anyOf", ())]
    values = [json.dumps(value) for value in schema.get("enum", ())]
    return " | ".join(options or values) or str(schema.get("type", "any"))


def _schema(given: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """Return the JSON schema of a body, in which references are replaced by their schemas."""
    schema = given.get("content", {}).get("application/json", {}).get("schema")
    return json.dumps(_whole(schema, document["components"]["schemas"]), indent=1) if schema else ""


def _whole(schema: Any, known: Mapping[str, Any], inside: frozenset[str] = frozenset()) -> Any:
    """Replace references by their schemas, except those of a schema to itself."""
    if isinstance(schema, list):
        return [_whole(one, known, inside) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name in known and name not in inside:
        return _whole(known[name], known, inside | {name})
    return {key: _whole(value, known, inside) for key, value in schema.items()}
