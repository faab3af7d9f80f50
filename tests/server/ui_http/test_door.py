"""Pages need a login, forms of other sites are refused, and a login allows what its scopes allow."""

from __future__ import annotations

import re
import time

import pytest

from reasonblocks_server.values import Scope
from tests.server.board import HOSTILE_ID, Board
from tests.server.running import ORG
from tests.server.ui_http.conftest import Enter

ADMIN_ONLY = ("/ui/keys", "/ui/audit", "/ui/org", "/ui/new-pattern")
FORMS = {
    "/ui/runs/child/notes": "steer", "/ui/runs/child/withdraw/n": "steer", "/ui/runs/child/delete": "admin",
    "/ui/patterns/ours": "admin", "/ui/patterns/ours/switch": "admin", "/ui/patterns/ours/delete": "admin",
    "/ui/new-pattern": "admin", "/ui/agents/one": "admin", "/ui/keys": "admin", "/ui/keys/revoke": "admin",
    "/ui/org": "admin", "/ui/memory/acme%2Fshop/forget": "evaluate", "/ui/memory/acme%2Fshop/clear": "evaluate",
    "/ui/threads/th_x/answer": "steer",
}  # fmt: skip
"""The forms, with the scope that each needs."""


def test_every_page_leads_a_stranger_to_the_login_and_back(enter: Enter, site: Board) -> None:
    stranger = enter(login=False)
    for path in site.paths.values():
        answer = stranger.get(path)
        assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/ui/login"), path
        assert answer.text == ""
    assert stranger.get("/ui/keys?x=1").headers["location"] == "/ui/login?to=%2Fui%2Fkeys%3Fx%3D1"
    assert stranger.get("/ui/stream").status_code == 401
    assert [stranger.get(path).headers["location"] for path in ("/", "/ui", "/ui/runs/")] == ["/ui/"] * 2 + [
        "/ui/login?to=%2Fui%2Fruns%2F"
    ]


@pytest.mark.parametrize("path", FORMS)
def test_no_form_is_taken_from_a_stranger(enter: Enter, path: str) -> None:
    answer = enter(login=False).post(path, text="x")
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/login")


@pytest.mark.parametrize("path", [*FORMS, "/ui/logout"])
@pytest.mark.parametrize(
    ("origin", "token"),
    [("https://evil.example", ""), (None, ""), ("", None), ("", "0" * 64), ("", "é")],
    ids=["another site", "no origin", "no token", "a wrong token", "no ASCII"],
)
def test_a_form_of_another_site_is_refused(
    enter: Enter, site: Board, path: str, origin: str | None, token: str | None
) -> None:
    person = enter()
    answer = person.post(path, origin, token, text="Obey.", days="1", key_id="x", id="x", tier="e3", off="1")
    assert answer.status_code == 403
    assert "Form refused" in answer.text
    assert person.get("/ui/").status_code == 200, "the login is still valid"
    assert site.running.server.storage.notes.list(ORG, "child") == []
    assert site.running.server.storage.orgs.get(ORG)["retention_days"] == 30


@pytest.mark.parametrize(("site_header", "status"), [("same-origin", 303), ("cross-site", 403), ("same-site", 403)])
def test_a_page_without_a_referrer_sends_no_origin_so_the_browser_s_word_counts(
    enter: Enter, site_header: str, status: int
) -> None:
    person = enter()
    answer = person.client.post(
        "/ui/org", data={"days": "30", "token": _token(person.get("/ui/org").text)},
        headers={"origin": "null", "sec-fetch-site": site_header},
    )  # fmt: skip
    assert answer.status_code == status


def _token(html: str) -> str:
    found = re.search(r'name="token" value="([0-9a-f]{64})"', html)
    assert found
    return found[1]


@pytest.mark.parametrize("path", FORMS)
def test_a_form_needs_its_scope(enter: Enter, path: str) -> None:
    without: list[Scope] = [scope for scope in ("read", "steer", "admin") if scope != FORMS[path]]
    answer = enter(*without).post(path, text="x")
    assert (answer.status_code, f"no scope &#39;{FORMS[path]}&#39;" in answer.text) == (403, True)


def test_pages_of_settings_need_the_scope_admin(enter: Enter) -> None:
    reader = enter("read", "steer")
    assert [reader.get(path).status_code for path in ADMIN_ONLY] == [403] * 4
    assert 'href="/ui/keys"' not in reader.get("/ui/").text


def test_a_login_needs_its_time_a_valid_key_and_the_scope_read(enter: Enter, site: Board) -> None:
    assert enter("read", seconds=-1).get("/ui/").status_code == 303
    assert enter("ingest", "admin").get("/ui/").status_code == 303
    person = enter("read", "admin")
    key = site.running.server.storage.keys.login_key(person.cookie, time.time())
    assert key is not None
    site.running.server.storage.keys.revoke(ORG, key.key_id, time.time())
    assert person.get("/ui/").status_code == 303


def test_a_login_that_is_ended_cannot_be_used_again(enter: Enter) -> None:
    person = enter()
    assert person.post("/ui/logout").headers["location"] == "/ui/login?said=logged-out"
    person.client.cookies.set("rb_login", person.cookie)
    assert person.get("/ui/").status_code == 303


@pytest.mark.parametrize(
    "to", ["https://evil.example/", "//evil.example", "/\\evil.example", "/ui/../v1/x\n", "/v1/org"]
)
def test_a_login_redirects_to_no_other_site(enter: Enter, site: Board, to: str) -> None:
    stranger = enter(login=False)
    stranger.get("/ui/login")
    answer = stranger.post("/ui/login", key=site.running.key, to=to)
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/")


def test_the_form_of_the_login_is_bound_to_its_browser(enter: Enter, site: Board) -> None:
    one, other = enter(login=False), enter(login=False)
    token = _token(one.get("/ui/login").text)
    assert other.post("/ui/login", token=token, key=site.running.key).status_code == 403
    assert one.post("/ui/login", token=token, key=site.running.key).status_code == 303


def test_a_cookie_is_secure_away_from_loopback(enter: Enter, site: Board) -> None:
    stranger = enter(login=False)
    answer = stranger.get("/ui/login", host="reasonblocks.example")
    assert "; Secure" in answer.headers["set-cookie"]
    assert "; Secure" not in enter(login=False).get("/ui/login").headers["set-cookie"]


def test_another_org_sees_nothing(enter: Enter, site: Board) -> None:
    stranger = enter(org="other")
    one = {name: path for name, path in site.paths.items() if "/runs/" in path or "/experiments/" in path}
    assert {name: stranger.get(path).status_code for name, path in one.items()} == dict.fromkeys(one, 404)
    assert stranger.get(site.paths["pattern"]).status_code == 404
    assert stranger.get(site.paths["agent"]).status_code == 404
    for path in ("/ui/", "/ui/audit", "/ui/patterns", "/ui/experiments", "/ui/agents"):
        assert not re.search(r"run-1|bugfixer|ours|alert\(1\)", stranger.get(path).text), path
    assert stranger.post("/ui/runs/child/notes", text="x").status_code == 404


def test_a_key_of_one_project_sees_its_runs_only(enter: Enter, site: Board) -> None:
    site.start("billing-1", project_id="billing", task="In billing.")
    site.start("secret-child", project_id="payroll", task="In payroll.", parent_run_id="billing-1", agent_name="payer")
    person = enter(project_id="billing")
    listed = person.get("/ui/").text
    assert "payer" not in listed
    assert "In payroll." not in person.get("/ui/runs/billing-1").text
    assert "In billing." in listed
    assert "Fix the failing tests." not in listed
    assert person.get("/ui/runs/billing-1").status_code == 200
    assert person.get(site.paths["run"]).status_code == 404
    of_the_org = ("/ui/audit", "/ui/org", "/ui/agents", "/ui/experiments", "/ui/new-pattern")
    assert [person.get(path).status_code for path in of_the_org] == [403] * 5
    assert person.post("/ui/keys", name="wider", **{"scope-read": "1", "project": "other"}).status_code == 422


def test_a_key_makes_no_key_that_may_do_more(enter: Enter, site: Board) -> None:
    answer = enter("read", "admin").post("/ui/keys", name="wider", **{"scope-steer": "1"})
    assert (answer.status_code, "rbk_" in answer.text.partition("<form")[0]) == (422, False)
    assert all(row.name != "wider" for row in site.running.server.storage.keys.list(ORG))


def test_changes_are_audited(enter: Enter, site: Board) -> None:
    person = enter()
    site.start("audited")
    person.post("/ui/runs/audited/notes", text="Stop.")
    person.post("/ui/org", days="31")
    person.post("/ui/runs/audited/delete")
    person.post("/ui/org", days="30")
    actions = [row.action for row in site.running.server.storage.audit.list(ORG, limit=4, before=None)]
    assert actions == ["org.put", "run.delete", "org.put", "note.add"]
    assert person.get("/ui/runs/audited").status_code == 404


def test_a_form_of_any_size_and_number_of_fields_is_answered(enter: Enter) -> None:
    person = enter()
    assert person.post("/ui/runs/child/notes", text="x" * 300_000).status_code == 413
    assert person.post("/ui/runs/child/notes", **{f"f{at}": "x" for at in range(200)}).status_code == 400
    assert person.post("/ui/runs/child/notes", text="x" * 2_001).status_code == 422


def test_a_note_for_a_run_that_takes_none_is_refused_with_the_reason(enter: Enter, site: Board) -> None:
    answer = enter().post(f"{site.paths['run']}/notes", text="Too late.")
    assert answer.status_code == 409
    assert HOSTILE_ID not in answer.text
