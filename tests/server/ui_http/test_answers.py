"""Every page has strict headers, shows hostile texts as texts, and answers any request."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasonblocks_server.ui
from reasonblocks_server.ui._counts import facts_of
from reasonblocks_server.ui._paths import EXPERIMENTS, PATTERNS, RUNS, href, id_in, local
from tests.server.board import HOSTILE_ID, STORED, Board
from tests.server.ui_http.conftest import Enter
from tests.workbench.report.markup import parsed
from tests.workbench.report.test_templates import INLINE_CODE, UNSAFE

FOLDER = Path(reasonblocks_server.ui.__file__).parent
TEMPLATES = sorted((FOLDER / "templates").glob("*.html"))
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


def test_every_page_has_strict_headers(enter: Enter, site: Board) -> None:
    person = enter()
    for path in (*site.paths.values(), "/ui/login", "/ui/nowhere", "/ui/runs/nowhere"):
        headers = person.get(path).headers
        assert headers["content-security-policy"] == POLICY, path
        assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "no-referrer")
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")


def test_the_share_of_successes_is_that_of_the_runs_with_a_known_outcome() -> None:
    outcomes = {"success": 1, "failure": 2, "stopped": 1, "unknown": 3}
    counts = {"runs": 8, "live": 1, "by_outcome": outcomes, "recovered": {}, "injections": 0}
    assert [(fact.value, fact.note) for fact in facts_of(counts) if fact.name == "Succeeded"] == [
        ("25 %", "of 4 with a known outcome")
    ]


def test_a_note_names_the_key_of_its_author(enter: Enter, site: Board) -> None:
    person = enter("read", "steer", name="Ada")
    site.start("named")
    person.post("/ui/runs/named/notes", text="Run the unit tests only.", expires="900")
    assert "by key <bdi>Ada</bdi>" in person.get("/ui/runs/named").text


def test_hostile_texts_become_no_element_and_no_attribute(enter: Enter, site: Board) -> None:
    person = enter()
    for name, path in site.paths.items():
        root = parsed(person.get(path).text)
        assert {one.attributes.get("src", "").partition("?")[0] for one in root.find("script")} == {
            "/ui/static/report.js", "/ui/static/live.js"
        }, name  # fmt: skip
        for one in root.all():
            assert one.tag not in ("img", "iframe", "object", "embed", "style", "base"), (name, one.tag)
            wrong = [key for key in one.attributes if key.startswith("on") or key in ("style", "srcdoc", "formaction")]
            assert wrong == [], (name, one.tag)
            for key in ("href", "action"):
                given = one.attributes.get(key, "")
                assert re.match(r"\Z|#|\?|/ui/", given), (name, given)


def test_hidden_characters_are_shown_by_their_code_points(enter: Enter, site: Board) -> None:
    person = enter()
    for name in ("runs", "hostile", "attack", "bad pattern", "bad agent", "keys", "audit"):
        html = person.get(site.paths[name]).text
        assert "U+202E" in html, name
        assert hidden_on(html) is None, name


def test_the_pages_of_threads_leave_hidden_characters_out_but_show_parameters_exactly(
    enter: Enter, site: Board
) -> None:
    person = enter()
    pages = {name: person.get(site.paths[name]).text for name in ("threads", "hostile thread", "answered thread")}
    for name, html in pages.items():
        assert (hidden_on(html), "U+202E" in html) == (None, False), name
    assert "\\u202e" in pages["hostile thread"]


def hidden_on(html: str) -> re.Match[str] | None:
    """Return the first hidden character that a page shows."""
    shown = re.sub(r'(?:value|href|action|data-\w+)="[^"]*"|<textarea.*?</textarea>', "", html, flags=re.DOTALL)
    return re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x1b]", shown)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_escapes_everything_and_has_no_inline_code(path: Path) -> None:
    source = re.sub(r"\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert UNSAFE.findall(source) == []
    assert INLINE_CODE.findall(source) == []
    assert re.findall(r"=\s*\{\{", re.sub(r"\{%.*?%\}", "", source)) == []


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_no_module_makes_markup(path: Path) -> None:
    names = {node.id for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Name)}
    assert not names & {"Markup", "markupsafe", "HTMLResponse"} or path.name == "_pages.py"


def test_the_script_makes_no_markup_of_strings() -> None:
    source = (FOLDER / "templates" / "live.js").read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", source)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from([RUNS, PATTERNS, EXPERIMENTS]))
def test_an_address_leads_back_to_its_id(id: str, base: str) -> None:
    address = href(base, id, "text", "3", "a/b")
    assert id_in(base, address) == (id, ["text", "3", "a/b"])
    assert re.fullmatch(r"[!-~]+", address)
    assert not {".", "..", ""} & {*address.removeprefix(base).split("/")}


@given(st.text())
def test_only_addresses_of_the_dashboard_are_local(target: str) -> None:
    assert local("/ui/" + target) in ("/ui/", "/ui/" + target)
    assert local(target) == "/ui/" or target.startswith("/ui/")


@pytest.mark.parametrize("run_id", ["..", ".", "a/b?c#d%00", "~id:x", HOSTILE_ID, "notes", "x/json", "ü %2F"])
def test_a_run_of_any_id_has_its_page(enter: Enter, site: Board, run_id: str) -> None:
    site.start(run_id, task=f"The task of {run_id}")
    person = enter()
    assert parsed(person.get(href(RUNS, run_id)).text).find("h1")
    body = person.get(href(RUNS, run_id, "json")).json()
    assert body["run"]["run_id"] == run_id
    assert person.get(href(RUNS, run_id, "text", "", "task")).text == f"The task of {run_id}"


def test_the_json_of_a_run_has_its_texts_in_full(enter: Enter, site: Board) -> None:
    task = "long " * 10_000
    site.start("long-task", task=task)
    assert enter().get(href(RUNS, "long-task", "json")).json()["run"]["task"] == task


def test_a_whole_text_is_plain_and_not_sniffed(enter: Enter, site: Board) -> None:
    person = enter()
    answer = person.get(href(RUNS, STORED, "text", "1", "thought"))
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert len(answer.text) > 100_000
    for name in ("observation", "told-9", ""):
        assert person.get(href(RUNS, STORED, "text", "1", name)).status_code == 404
    for number in ("99", "9" * 30, "-1", "٣"):
        assert person.get(href(RUNS, STORED, "text", number, "thought")).status_code == 404


@pytest.mark.parametrize(
    "query",
    ["cursor=x", "cursor=%00", "state=%00&q=%ff", "call=99999999999999999999", "call=-1", "after=x", "days=x",
     "page=99999999999", "before=9999999999999999999999", "tier=e9", "said=%3Cscript%3E", "q=" + "x" * 5_000],
)  # fmt: skip
def test_any_query_is_answered(enter: Enter, site: Board, query: str) -> None:
    person = enter()
    for name in ("runs", "run", "health", "patterns", "new", "agent", "audit"):
        path = site.paths[name]
        assert person.get(f"{path}{'&' if '?' in path else '?'}{query}").status_code in (200, 404), name


def test_stylesheets_and_scripts_may_be_cached(enter: Enter) -> None:
    stranger = enter(login=False)
    root = parsed(stranger.get("/ui/login").text)
    for address in (*(one.attributes["href"] for one in root.find("link")),
                    *(one.attributes["src"] for one in root.find("script"))):  # fmt: skip
        answer = stranger.get(address)
        assert (answer.status_code, "immutable" in answer.headers["cache-control"]) == (200, True)
        assert answer.headers["content-type"].startswith(("text/css", "text/javascript"))
    assert stranger.get("/ui/static/..%2F_visit.py").status_code == 404


def test_a_long_list_has_pages_that_lead_on(enter: Enter, site: Board) -> None:
    for at in range(55):
        site.start(f"page-{at}", task="One of many.")
    person, seen, path = enter(), set[str](), "/ui/?q=one+of+many"
    while path:
        root = parsed(person.get(path).text)
        seen |= {one.attributes["href"] for one in root.find("table")[0].find("a")}
        path = next((one.attributes["href"] for one in root.find("a", rel="next")), "")
    assert len(seen) == 55


def test_a_page_without_its_body_has_the_same_status(enter: Enter, site: Board) -> None:
    person = enter()
    assert {person.client.head(path).status_code for path in site.paths.values()} == {200}


def test_the_dashboard_is_in_no_document_of_the_api(enter: Enter) -> None:
    paths = enter(login=False).get("/openapi.json").json()["paths"]
    assert [path for path in paths if "/ui" in path or path == "/"] == []
