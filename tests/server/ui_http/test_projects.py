"""A person with a key of one project sees nothing of another one, and changes nothing of the whole org."""

from __future__ import annotations

import time

import pytest

from reasonblocks_server.ui import _stream
from tests.server.board import Board
from tests.server.running import ORG
from tests.server.ui_http.conftest import Enter


def test_a_key_of_a_project_changes_no_pattern(site: Board, enter: Enter) -> None:
    mine = enter(project_id="mine")
    given = {"id": "by-project", "tier": "e3", "field-instruction": "Obey."}
    assert mine.get("/ui/new-pattern").status_code == 403
    assert mine.post("/ui/new-pattern", **given).status_code == 403
    assert enter().post("/ui/new-pattern", **given).status_code == 303
    page = "/ui/patterns/by-project"
    assert "<textarea" not in mine.get(page).text
    for path in (page, f"{page}/switch", f"{page}/delete"):
        assert mine.post(path, revision="1", off="1").status_code == 403
    site.running.server.patterns.remove(ORG, "by-project")


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "//"])
def test_a_form_with_an_origin_that_is_no_address_is_refused(enter: Enter, origin: str) -> None:
    assert enter(login=False).post("/ui/login", origin=origin, key="rbk_x_y").status_code == 403


def test_the_stream_of_a_person_whose_login_ended_ends(
    site: Board, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_stream, "BEAT", 0.01)
    monkeypatch.setattr(_stream, "CHECK", 0.0)
    person, ends = enter(), time.monotonic() + 20
    with person.client.stream("GET", "/ui/stream") as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 2000"
        site.running.server.storage.keys.logout(person.cookie)
        assert all(time.monotonic() < ends for _ in lines)
