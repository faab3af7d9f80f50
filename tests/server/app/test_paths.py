"""Every route is served with and without a version, and is in the document."""

from __future__ import annotations

import base64
import hashlib

import httpx
import pytest

from tests.server.routes.walk import KNOWN


@pytest.mark.parametrize("path", ["/health", "/ready", "/openapi.json", "/docs", "/patterns", "/monitor/runs"])
def test_routes_are_served_with_and_without_a_version(client: httpx.Client, path: str) -> None:
    with_version, without = client.get(f"/v1{path}"), client.get(path)
    assert with_version.status_code == without.status_code == 200
    assert with_version.content == without.content


def test_the_document_has_each_route_once_with_its_version(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert "/v1/monitors/evaluate" in document["paths"]
    assert all(path.startswith("/v1/") for path in document["paths"])
    operations = {path: [*methods.values()] for path, methods in document["paths"].items()}
    open_paths = {path for path, found in operations.items() if any("security" not in one for one in found)}
    assert open_paths == {"/v1/health", "/v1/ready"}


def test_each_route_of_the_document_names_its_scope(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    for (method, path), route in KNOWN.items():
        wanted = [] if route.scope is None else [{"key": [route.scope]}]
        assert paths[f"/v1{path}"][method.lower()].get("security", []) == wanted, path


def test_the_page_of_the_documentation_has_whole_schemas(client: httpx.Client) -> None:
    page = client.get("/docs").text
    assert "Scope: <code>ingest</code>" in page
    assert "$ref" not in page


def test_a_body_without_its_content_type_gets_a_hint(client: httpx.Client) -> None:
    answer = client.post("/score", content='{"text": "t"}', headers={"Content-Type": "text/plain"})
    assert answer.json() == {"detail": "body: send it with the header Content-Type: application/json"}


def test_the_page_of_the_documentation_names_every_route_and_loads_nothing(client: httpx.Client) -> None:
    page = client.get("/docs")
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page.text
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for word in ("<script", "http://", "https://", "src=", " onclick", "<link"):
        assert word not in page.text


def test_the_style_of_the_page_is_the_one_that_its_policy_allows(client: httpx.Client) -> None:
    page = client.get("/docs")
    style = page.text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in page.headers["Content-Security-Policy"]
