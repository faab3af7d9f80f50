"""The pages of codebase memory list, search and forget findings, whatever these contain."""

from __future__ import annotations

import itertools
import re

import pytest

from reasonblocks.types import Codebase
from reasonblocks_server.ui._paths import codebase_href
from tests.server.board import CODEBASE, HOSTILE_CODEBASE, NAMED, Board, finding
from tests.server.running import ORG
from tests.server.ui_http.conftest import Enter

NUMBERS = itertools.count()
PLACE = codebase_href(CODEBASE)
IDS = ("a/b", "a/search", "100%", "a%2Fb", "?q=1#x", "über/größe 日本", "..", ".", "~id:x", "a\\b", "<b>")


@pytest.fixture
def scope(site: Board) -> Codebase:
    """A codebase of its own, with a finding about no file, two files in a folder and one beside it."""
    found = Codebase(org_id=ORG, codebase_id=f"own/{next(NUMBERS)}")
    store(site, found)
    return found


def store(site: Board, codebase: Codebase) -> None:
    paths = {"none": "", "a": "src/a.py", "b": "src/b/c.py", "beside": "src2.py"}
    found = [finding(name, f"Content of {name}.", path) for name, path in paths.items()]
    site.running.server.findings.store.put(codebase, found)


def left(site: Board, codebase: Codebase) -> set[str]:
    return {one.finding_id for one in site.running.server.findings.store.page(codebase)}


def audited(site: Board) -> tuple[str, str]:
    (row,) = site.running.server.storage.audit.list(ORG, limit=1, before=None)
    return row.action, row.target


def test_the_list_has_every_codebase_with_its_count(enter: Enter) -> None:
    text = enter("read").get("/ui/memory").text
    assert re.search(rf'href="{PLACE}".*?data-name="findings">102<.*?2026-10-01 12:00:00 UTC', text)
    assert f'href="{codebase_href(HOSTILE_CODEBASE)}"' in text


def test_without_findings_the_list_says_where_they_come_from(enter: Enter) -> None:
    text = enter(org="empty").get("/ui/memory").text
    assert "No findings yet" in text
    assert "CodebaseMemory(" in text


def test_pages_have_every_finding_once(enter: Enter) -> None:
    person, path, seen = enter("read"), PLACE, list[str]()
    while path:
        text = person.get(path).text
        seen += re.findall(r"<bdi>(shop/\d+\.py|Makefile)</bdi>", text)
        following = re.search(r'<a href="([^"]+)" rel="next">', text)
        path = following[1].replace("&amp;", "&") if following else ""
    assert sorted(seen) == sorted(["Makefile", *(f"shop/{at}.py" for at in range(101))])


def test_a_search_shows_the_findings_that_an_agent_would_recall_with_scores(enter: Enter) -> None:
    person = enter("read")
    text = person.get(f"{PLACE}?q=which+command+before+the+tests").text
    assert "The tests need `make services` first." in text
    assert re.search(r"score (0\.\d\d|1\.00)<", text)
    assert "No finding fits" in person.get(f"{PLACE}?q=xyzzy").text


@pytest.mark.parametrize("name", IDS)
def test_an_id_of_any_characters_leads_to_its_codebase(enter: Enter, site: Board, name: str) -> None:
    codebase = Codebase(org_id=ORG, codebase_id=name)
    store(site, codebase)
    person = enter()
    assert "Content of none." in person.get(codebase_href(name)).text
    assert person.post(codebase_href(name, "forget"), finding_id="none").status_code == 303
    assert left(site, codebase) == {"a", "b", "beside"}
    assert person.post(codebase_href(name, "clear")).headers["location"] == "/ui/memory?said=findings-forgotten"
    assert person.get(codebase_href(name)).status_code == 404


def test_hostile_findings_are_whole_and_plain_text(enter: Enter, site: Board) -> None:
    text = enter().get(codebase_href(HOSTILE_CODEBASE)).text
    assert "<script>alert" not in text
    assert "<img" not in text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x1b]", text)
    assert "8,000 characters</span></summary>" in text
    assert "x" * 7_000 in text
    assert "&lt;/bdi&gt;&lt;img src=x onerror=alert(1)&gt;" in text
    assert '<b class="cp">U+202E</b>' in text


@pytest.mark.parametrize(
    ("given", "gone"),
    [({"finding_id": "a"}, {"a"}), ({"file_path": "src"}, {"a", "b"}), ({"file_path": "./src/a.py"}, {"a"})],
)
def test_findings_are_forgotten_and_audited(
    enter: Enter, site: Board, scope: Codebase, given: dict[str, str], gone: set[str]
) -> None:
    answer = enter().post(codebase_href(scope.codebase_id, "forget"), q="a b", after="0", **given)
    said = "finding-forgotten" if "finding_id" in given else "findings-forgotten"
    assert answer.headers["location"] == f"{codebase_href(scope.codebase_id)}?q=a+b&after=0&said={said}"
    assert left(site, scope) == {"none", "a", "b", "beside"} - gone
    assert audited(site) == ("finding.invalidate", f"{scope.codebase_id}: {len(gone)} finding{'s' * (len(gone) > 1)}")


def test_a_cleared_codebase_is_audited(enter: Enter, site: Board, scope: Codebase) -> None:
    enter().post(codebase_href(scope.codebase_id, "clear"))
    assert left(site, scope) == set()
    assert audited(site) == ("finding.clear", f"{scope.codebase_id}: 4 findings")


@pytest.mark.parametrize(
    ("given", "status"), [({}, 422), ({"file_path": " "}, 422), ({"file_path": "."}, 422), ({"file_path": "no"}, 303)]
)
def test_a_form_that_names_no_finding_forgets_none(
    enter: Enter, site: Board, scope: Codebase, given: dict[str, str], status: int
) -> None:
    before = audited(site)
    assert enter().post(codebase_href(scope.codebase_id, "forget"), **given).status_code == status
    assert left(site, scope) == {"none", "a", "b", "beside"}
    assert audited(site) == before


def test_another_org_sees_and_forgets_nothing(enter: Enter, site: Board, scope: Codebase) -> None:
    stranger, place = enter(org="other"), codebase_href(scope.codebase_id)
    assert scope.codebase_id not in stranger.get("/ui/memory").text
    assert stranger.get(place).status_code == 404
    stranger.post(f"{place}/forget", finding_id="a")
    stranger.post(f"{place}/forget", file_path="src")
    stranger.post(f"{place}/clear")
    assert left(site, scope) == {"none", "a", "b", "beside"}


def test_a_key_of_a_project_and_one_without_the_scope_only_read(enter: Enter, site: Board, scope: Codebase) -> None:
    place = codebase_href(scope.codebase_id)
    for person in (enter(project_id="mine"), enter("read", "admin")):
        text = person.get(place).text
        assert ("Content of a." in text, f"{place}/forget" in text) == (True, False)
        answers = [person.post(f"{place}/forget", finding_id="a"), person.post(f"{place}/clear")]
        assert [answer.status_code for answer in answers] == [403, 403]
    assert left(site, scope) == {"none", "a", "b", "beside"}


def test_a_page_beyond_the_end_leads_back(enter: Enter) -> None:
    text = enter("read").get(f"{PLACE}?after=zzz").text
    assert "No more findings" in text
    assert NAMED not in text
