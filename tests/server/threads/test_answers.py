"""A person decides in the browser: each card is answered once, exactly as it was shown."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from reasonblocks_server.ui._paths import run_href, thread_href
from reasonblocks_server.values import Scope
from reasonblocks_threads import Card, Phase
from tests.server.board import Board
from tests.server.running import ORG
from tests.server.threads.world import SECONDS, Agent, answers_on, form_of, page_of, send, words_of
from tests.server.ui_http.conftest import Enter


def test_an_approval_of_a_built_in_action_takes_effect_while_no_agent_is_there(enter: Enter, agent: Agent) -> None:
    person, card = enter("read", "steer", name="Mira"), agent.asks("acknowledge", {"note": "Seen."})
    answer = send(person, card, "approve")
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        f"{thread_href(card.thread_id)}?said=card-answered",
    )
    assert agent.threads.wait(card.thread_id, SECONDS).phase is Phase.DONE
    approved = next(event for event in agent.threads.log(card.thread_id) if event.kind == "action_approved")
    assert (approved.actor.kind, approved.actor.name.startswith("Mira (key ")) == ("person", True)
    html = page_of(person, card)
    assert "How it ended" in html
    assert answers_on(html) == []
    assert 'href="/ui/threads/' in person.get("/ui/threads?show=ended").text


def test_an_approved_action_of_the_agent_is_done_by_its_process(enter: Enter, agent: Agent, site: Board) -> None:
    person, card = enter(), agent.asks()
    agent.calls.clear()
    send(person, card, "approve")
    thread = agent.threads.get(card.thread_id)
    assert (thread.phase, agent.calls) == (Phase.EXECUTING, [])
    assert thread.cause.title in words_of(person.get("/ui/threads?show=progress").text)
    agent.card(card.thread_id)  # the action is irreversible, so its outcome is reviewed
    assert agent.calls == [{"service": "web", "version": "1", "replicas": 1}]
    send(person, agent.card(card.thread_id), "done")
    assert agent.ended(card.thread_id).phase is Phase.DONE
    actions = [row.action for row in site.running.server.storage.audit.list(ORG, limit=2, before=None)]
    assert actions == ["card.answer", "card.answer"]


def test_an_edit_changes_what_was_changed_and_asks_again(enter: Enter, agent: Agent) -> None:
    person, card = enter(), agent.asks(parameters={"service": "web", "replicas": 3})
    names = {key: f"p{at}" for at, key in enumerate(card.parameters)}
    send(person, card, "edit", **{names["service"]: "api\n\u00fc", names["replicas"]: "5"})
    following = agent.card(card.thread_id, after=card.id)
    assert following.parameters == {**card.parameters, "service": "api\n\u00fc", "replicas": 5}
    assert (following.kind, following.hash == card.hash) == ("consent", False)


def test_another_action_can_be_chosen_with_parameters_as_json(enter: Enter, agent: Agent) -> None:
    person, card = enter(), agent.asks()
    send(person, card, "edit", pick="hand_off", more='{"to": "the team"}')
    following = agent.card(card.thread_id, after=card.id)
    assert (following.action, following.parameters["to"]) == ("hand_off", "the team")
    send(person, following, "approve")
    assert agent.ended(card.thread_id).phase is Phase.HANDED_OFF


def test_an_approval_holds_only_for_the_action_that_was_shown(enter: Enter, agent: Agent) -> None:
    person, card = enter(), agent.asks()
    answer = send(person, card, "approve", hash="0" * 32)
    assert answer.status_code == 422
    assert agent.threads.get(card.thread_id).phase is Phase.AWAITING_CONFIRMATION
    fields = {"card": card.id, "answer": "approve"}
    assert person.post(thread_href(card.thread_id, "answer"), **fields).status_code == 422, "no hash at all"
    assert agent.threads.get(card.thread_id).phase is Phase.AWAITING_CONFIRMATION


def test_an_answer_to_a_closed_card_changes_nothing_and_says_who_was_faster(enter: Enter, agent: Agent) -> None:
    mira, odo, card = enter(name="Mira"), enter(name="Odo"), agent.asks()
    seen = page_of(odo, card)
    send(mira, card, "edit", p0="api")
    before = agent.threads.log(card.thread_id)
    answer = send(odo, card, "approve", seen)
    assert answer.status_code == 409
    assert "Mira (key " in words_of(answer.text)
    assert "corrected the proposal before your answer arrived" in words_of(answer.text)
    assert f'href="{thread_href(card.thread_id)}">Look at the open card' in answer.text
    assert agent.threads.log(card.thread_id) == before


def test_of_two_answers_at_once_one_counts(enter: Enter, agent: Agent) -> None:
    people, card = [enter(), enter()], agent.asks()
    pages = [page_of(person, card) for person in people]
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(send, people[at], card, ("reject", "dismiss")[at], pages[at]) for at in range(2)]
    assert sorted(one.result().status_code for one in both) == [303, 409]
    ends = [event for event in agent.threads.log(card.thread_id) if event.data.get("to") == "dismissed"]
    assert len(ends) == 1


@pytest.fixture(scope="module")
def asked(agent: Agent) -> Card:
    """A card that refuses every answer of the next test."""
    return agent.asks()


@pytest.mark.parametrize(
    ("answer", "typed", "reason"),
    [
        ("edit", {"p0": "api", "more": '{"colour": "red"}'}, "colour"),
        ("edit", {"p0": "api", "more": "[1]"}, "JSON object"),
        ("edit", {"p0": "api", "more": "{"}, "not valid JSON"),
        ("edit", {"p0": "api", "more": '{"replicas": NaN}'}, "not valid JSON"),
        ("edit", {"text": "x" * 3_000}, "2,000"),
        ("redirect", {"text": "Look again.", "stage": "nowhere"}, "stage"),
        ("take_over", {"to": " "}, "to"),
        ("later", {"until": "0"}, "Choose when"),
        ("later", {"until": "\u0663"}, "Choose when"),
    ],
)
def test_a_refused_answer_keeps_what_was_typed(
    enter: Enter, agent: Agent, asked: Card, answer: str, typed: dict[str, str], reason: str
) -> None:
    person, card = enter(), asked
    before = agent.threads.get(card.thread_id).version
    refused = send(person, card, answer, **typed)
    assert refused.status_code == 422
    fields = form_of(refused.text, answer)
    texts = {name: value for name, value in typed.items() if name not in ("until", "stage")}
    assert {name: fields[name] for name in texts} == texts
    assert reason in refused.text.partition('role="alert"')[2].partition("</p>")[0]
    assert agent.threads.get(card.thread_id).version == before


def test_a_card_is_put_off_and_listed_there(enter: Enter, agent: Agent) -> None:
    person, card = enter(), agent.asks(title="Not before Monday")
    assert send(person, card, "later", until="3600").headers["location"].endswith("said=card-later")
    assert "Not before Monday" not in person.get("/ui/threads").text
    assert "Not before Monday" in person.get("/ui/threads?show=later").text
    other = agent.asks(title="Now, please")
    assert "Now, please" not in person.get("/ui/threads?show=later").text
    assert other.title in person.get("/ui/threads").text
    send(person, card, "dismiss", reason="It is Sunday.")
    assert "It is Sunday." in page_of(person, card)


# --- who may


FORM = {"answer": "reject", "reason": "no"}


@pytest.mark.parametrize(("scopes", "status"), [(("read",), 403), (("read", "admin"), 403), (("read", "steer"), 303)])
def test_an_answer_needs_the_scope_steer(enter: Enter, agent: Agent, scopes: tuple[Scope, ...], status: int) -> None:
    person, card = enter(*scopes), agent.asks()
    assert ("<textarea" in page_of(person, card)) is (status == 303)
    assert person.post(thread_href(card.thread_id, "answer"), card=card.id, **FORM).status_code == status
    assert agent.threads.get(card.thread_id).phase.is_terminal is (status == 303)


def test_another_org_sees_and_answers_nothing(enter: Enter, agent: Agent) -> None:
    stranger, card = enter(org="other"), agent.asks(title="Only for us")
    assert stranger.get("/ui/threads").status_code == 200
    for tab in ("", "progress", "later", "ended"):
        assert "/ui/threads/" not in stranger.get(f"/ui/threads?show={tab}").text
    assert stranger.get(thread_href(card.thread_id)).status_code == 404
    assert stranger.get(thread_href(card.id)).status_code == 404
    assert stranger.post(thread_href(card.thread_id, "answer"), card=card.id, **FORM).status_code == 404
    assert agent.threads.get(card.thread_id).phase is Phase.AWAITING_CONFIRMATION


def test_a_key_of_a_project_sees_no_threads(enter: Enter, site: Board, agent: Agent) -> None:
    card = agent.asks(title="Of the whole org")
    site.start("run-1", project_id="mine")
    mine, everyone = enter(project_id="mine"), enter()
    assert "Of the whole org" in everyone.get(run_href("run-1")).text
    assert "Of the whole org" not in mine.get(run_href("run-1")).text
    assert ['href="/ui/threads"' in one.get("/ui/").text for one in (everyone, mine)] == [True, False]
    assert [mine.get(path).status_code for path in ("/ui/threads", thread_href(card.thread_id))] == [403, 403]
    assert mine.post(thread_href(card.thread_id, "answer"), card=card.id, **FORM).status_code == 403
    assert agent.threads.get(card.thread_id).phase is Phase.AWAITING_CONFIRMATION


def test_a_card_of_another_thread_or_none_is_not_found(enter: Enter, agent: Agent) -> None:
    person, one, other = enter(), agent.asks(), agent.asks()
    for thread, card in (
        (one.thread_id, other.id),
        (one.thread_id, "x"),
        ("th_x", one.id),
        ("th_x", ""),
        ("\u202e", "\0"),
    ):
        assert person.post(thread_href(thread, "answer"), card=card, **FORM).status_code == 404
    assert agent.threads.get(other.thread_id).phase is Phase.AWAITING_CONFIRMATION
    assert person.post(thread_href(one.thread_id, "answer"), card=one.id, answer="accept").status_code == 422
    assert person.get(thread_href(one.id)).text.count("May this run?") >= 1, "the id of a card leads to its thread"
    for path in ("/ui/threads/th_x", "/ui/threads/th_x/answer", f"{thread_href(one.thread_id)}/answer/x"):
        assert person.get(path).status_code == 404
