"""An agent's process with an action of its own, and the forms of cards as a browser sends them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from pydantic import BaseModel

from reasonblocks_server.ui._paths import thread_href
from reasonblocks_threads import Card, Thread, Threads
from tests.server.board import cause, proposals
from tests.server.ui_http.conftest import Person
from tests.workbench.report.markup import parsed

SECONDS = 20.0
"""The most time that a busy machine may take for a thread to go on."""


class Deploy(BaseModel):
    """The parameters of the agent's action."""

    service: str
    version: str = "1"
    replicas: int = 1


@dataclass
class Agent:
    """The process of an agent: its threads, and the calls of its action."""

    threads: Threads
    calls: list[Mapping[str, Any]] = field(default_factory=list)
    number: int = 0

    def asks(
        self, action: str = "deploy", parameters: dict[str, Any] | None = None, title: str = "Deploy web?"
    ) -> Card:
        """Open a thread, and return its card, which asks for consent."""
        self.number += 1
        given = {"service": "web"} if parameters is None else parameters
        thread = self.threads.open(cause(f"asked {self.number}", title), proposals=proposals(action, given))
        return self.card(thread.id)

    def card(self, thread_id: str, *, after: str = "") -> Card:
        """Return the open card of a thread, or the next one after another card."""
        self.threads.drain()
        found = self.threads.wait(thread_id, SECONDS, until=lambda one: one.phase.waits and card_of(one) != after)
        assert card_of(found) != after, "the thread did not go on"
        return self.threads.card(card_of(found)).card

    def ended(self, thread_id: str) -> Thread:
        self.threads.drain()
        return self.threads.wait(thread_id, SECONDS)


def card_of(thread: Thread) -> str:
    return f"{thread.id}.{thread.entered}"


def form_of(html: str, answer: str) -> dict[str, str]:
    """Return the fields of the form of an answer, as a browser would send them unchanged."""
    for form in parsed(html).find("form"):
        fields = {one.attributes["name"]: one.attributes.get("value", "") for one in form.find("input")}
        if fields.get("answer") == answer:
            fields |= {one.attributes["name"]: one.text.removeprefix("\n") for one in form.find("textarea")}
            for one in form.find("select"):
                chosen = [option for option in one.find("option") if "selected" in option.attributes] or one.find(
                    "option"
                )
                fields[one.attributes["name"]] = chosen[0].attributes["value"]
            return fields
    raise AssertionError(f"the page has no form for {answer!r}")


def answers_on(html: str) -> list[str]:
    """Return the answers that a page offers."""
    return re.findall(r'name="answer" value="(\w+)"', html)


def page_of(person: Person, card: Card) -> str:
    answer = person.get(thread_href(card.thread_id))
    assert answer.status_code == 200
    return answer.text


def send(person: Person, card: Card, answer: str, html: str | None = None, **typed: str) -> Any:
    """Send the form of an answer as a browser does, with what a person typed."""
    fields = form_of(page_of(person, card) if html is None else html, answer)
    assert {*typed} <= {*fields}, (typed, fields)
    fields.pop("token")
    return person.post(thread_href(card.thread_id, "answer"), **{**fields, **typed})


def words_of(html: str) -> str:
    """Return the text of a page as a person reads it."""
    return unescape(re.sub(r"<[^>]*>", " ", html))
