"""The page of an agent shows its patience, and the counts from which it is learned."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.server.board import Board
from tests.server.running import ORG
from tests.server.ui_http.conftest import Enter


def summary(reached: int, needless: int) -> dict[str, Any]:
    return {"reached": [reached] * 7, "needless": [needless] * 7, "checks": True}


def page(site: Board, enter: Enter, name: str, *summaries: dict[str, Any]) -> str:
    """Store the runs of an agent, and return the text of its page without tags."""
    for number, one in enumerate(summaries):
        site.running.server.storage.agents.add(ORG, name, "qa", f"r{number}", one, time.time())
    answer = enter("read").get(f"/ui/agents/one?name={name}&profile=qa")
    assert answer.status_code == 200, answer.text
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.text))


@pytest.mark.parametrize(
    ("name", "runs", "said"),
    [
        ("new", [summary(7, 0)], "1 finished run. It is told once 4 of 5 steps are dead, the default."),
        ("stuck", [summary(5, 0), summary(5, 1)], "2 finished runs. It is told once 2 of 3 steps are dead: the"),
        ("strong", [summary(40, 39)], "Its monitors are silent, because it gets out of its dead steps by itself"),
        ("old", [{"composite": 0.4}], "0 finished runs. It is told once 4 of 5 steps are dead, the default."),
    ],
)
def test_the_patience_of_an_agent_is_said(
    site: Board, enter: Enter, name: str, runs: list[dict[str, Any]], said: str
) -> None:
    assert said in page(site, enter, name, *runs)


def test_the_counts_of_all_runs_are_shown_by_rung(site: Board, enter: Enter) -> None:
    text = page(site, enter, "counted", summary(5, 1), summary(15, 2), {"composite": 0.4})
    assert "2 of 3 20 3 22 % learned 3 of 5 20 3 20 %" in text


def test_an_agent_without_runs_is_not_found(enter: Enter) -> None:
    assert enter("read").get("/ui/agents/one?name=nobody&profile=qa").status_code == 404


def test_a_deleted_agent_is_gone(site: Board, enter: Enter) -> None:
    page(site, enter, "gone", summary(9, 0))
    enter("read", "admin").post("/ui/agents/one", name="gone", profile="qa")
    assert enter("read").get("/ui/agents/one?name=gone&profile=qa").status_code == 404
