"""The page of a thread shows everything that a person needs, and texts of others only as texts."""

from __future__ import annotations

from reasonblocks_server.ui._paths import run_href, thread_href
from reasonblocks_threads import Actor, Cause, Evidence
from tests.server.board import Board, cause, proposals
from tests.server.threads.world import Agent, page_of, send, words_of
from tests.server.ui_http.conftest import Enter
from tests.workbench.report.markup import parsed


def test_a_card_is_shown_whole(enter: Enter, agent: Agent) -> None:
    asked = Cause(
        kind="proposal", key="whole", title="Deploy web 1.4?", run_id="run-1",
        evidence=(Evidence(id="e1", label="the tests", text="14 passed"),
                  Evidence(id="e2", label="the log", text="a secret", private=True)),
    )  # fmt: skip
    given = proposals("deploy", {"service": "web", "version": "1.4"}, "Bring 1.4 to the users.")
    thread = agent.threads.open(asked, proposals=given, by=Actor.agent("planner"))
    card = agent.card(thread.id)
    words = " ".join(words_of(page_of(enter(), card)).split())
    for part in (
        "May this run?", "Deploy web 1.4?", "Bring 1.4 to the users.", '"1.4"', '"web"', "irreversibility high",
        "external effect", "confidence 0.90", "Why a person is asked", "the tests", "14 passed", "private", "run-1",
        "0 of 8", "Run it exactly as shown",
    ):  # fmt: skip
        assert part in words, part
    assert "a secret" not in words


def test_a_text_of_several_lines_has_them_on_the_card_and_in_the_log(enter: Enter, agent: Agent) -> None:
    asked = Cause(kind="proposal", key="lines", title="Deploy?")
    given = proposals("deploy", {"service": 'one\n"two" \u200b\\n', "version": "1"}, "Bring it to the users.")
    thread = agent.threads.open(asked, proposals=given, by=Actor.agent("planner"))
    pres = parsed(page_of(enter(), agent.card(thread.id))).find("pre")
    frames = ["".join(one.text for one in pre.all()) for pre in pres]
    lines = 'one\n"two" \\u200b\\\\n'
    assert lines in frames
    assert "deploy\nservice =\n    " + lines.replace("\n", "\n    ") + '\nversion = "1"' in frames


def test_a_thread_leads_to_its_parts_and_back(enter: Enter, agent: Agent) -> None:
    person = enter()
    parent = agent.threads.open(cause("release", "Release 1.4"), children=[cause("notes", "Write the notes")])
    agent.threads.drain()
    (child,) = agent.threads.get(parent.id).children
    html = person.get(thread_href(parent.id)).text
    assert f'href="{thread_href(child.id)}"><bdi>Write the notes' in html
    assert "split the matter into 1 part" in html
    assert f'part of <a href="{thread_href(parent.id)}">' in person.get(thread_href(child.id)).text


def test_a_run_leads_to_its_live_threads(enter: Enter, site: Board, agent: Agent) -> None:
    site.start("stuck")
    asked = Cause(kind="run_stalled", key="stuck", title="It repeats itself", run_id="stuck")
    thread = agent.threads.open(asked, proposals=proposals("acknowledge", {}))
    card = agent.card(thread.id)
    person = enter()
    assert (
        f'href="{thread_href(thread.id)}">asks a person: <bdi>It repeats itself' in person.get(run_href("stuck")).text
    )
    assert f'href="{run_href("stuck")}"' in page_of(person, card)
    send(person, card, "dismiss")
    assert thread_href(thread.id) not in person.get(run_href("stuck")).text


def test_the_oldest_card_is_the_first(enter: Enter, agent: Agent) -> None:
    for at in range(2):
        agent.asks(title=f"In order {at}")
    html = enter().get("/ui/threads").text
    assert html.index("In order 0") < html.index("In order 1")


def test_a_long_log_shows_its_newest_lines(enter: Enter, agent: Agent) -> None:
    card = agent.asks()
    notes = [agent.threads.note(card.thread_id, f"note {at}.", by=Actor.agent("a")) for at in range(3)]
    assert notes[-1].version == len(agent.threads.log(card.thread_id))
    words = words_of(page_of(enter(), card))
    assert [f"note {at}." in words for at in range(3)] == [True] * 3
