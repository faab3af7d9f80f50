"""Every phase has its page, and every answer of every card can be given there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

from reasonblocks_server import threads
from reasonblocks_server.ui._paths import thread_href
from reasonblocks_server.ui._thread_words import PHASES, QUESTIONS
from reasonblocks_threads import Phase, Thread
from tests.server.board import Board
from tests.server.running import ORG, running
from tests.server.threads.world import answers_on, send, words_of
from tests.server.ui_http.conftest import Enter
from tests.threads.driver import Clock, Driver
from tests.whole import WHOLE

STAYS = [phase for phase in Phase if phase.waits or phase.is_terminal]
"""The phases that no due work leaves."""
WAITS = [phase for phase in Phase if phase.waits]
MOST = 8
"""The most answers of a card."""
Reached = tuple[Driver, Mapping[Phase, Sequence[Thread]]]


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reached]:
    """Threads in every phase that stays, in a database which no server uses yet."""
    database = tmp_path_factory.mktemp("phases") / "threads.db"
    with Driver(database, clock=Clock(time.time()), org_id=ORG) as driver:
        yield (
            driver,
            {
                phase: [driver.reach(phase.value) for _ in range(MOST if WHOLE and phase.waits else 1)]
                for phase in STAYS
            },
        )


@pytest.fixture(scope="module")
def site(reached: Reached) -> Iterator[Board]:
    """A server that waits for nothing after an answer: nobody here infers."""
    database = reached[0].database
    assert database is not None
    with pytest.MonkeyPatch.context() as patch, running(database.parent, threads_url=str(database)) as server:
        patch.setattr(threads, "SETTLE_S", 0.0)
        yield Board(running=server, started=time.time())


@pytest.mark.parametrize("phase", STAYS, ids=lambda phase: phase.value)
def test_a_phase_has_a_page_with_its_answers(enter: Enter, reached: Reached, phase: Phase) -> None:
    driver, threads = reached
    thread = threads[phase][0]
    answer = enter().get(thread_href(thread.id))
    assert (answer.status_code, PHASES[phase.value] in words_of(answer.text)) == (200, True)
    offered = [one.name for one in driver.card(thread.id).answers] if phase.waits else []
    assert answers_on(answer.text) == offered
    assert not phase.waits or QUESTIONS[driver.card(thread.id).kind] in answer.text


TYPED: Mapping[str, Mapping[str, str]] = {
    "provide": {"text": "Run the unit tests only."},
    "take_over": {"to": "the team"},
    "redirect": {"text": "Look at the second error.", "stage": "intent"},
}


@pytest.mark.parametrize("phase", WAITS, ids=lambda phase: phase.value)
def test_the_answers_of_a_card_move_its_thread(enter: Enter, reached: Reached, phase: Phase) -> None:
    driver, threads = reached
    person = enter()
    first = driver.card(threads[phase][0].id)
    for thread, offered in zip(threads[phase], first.answers, strict=False):
        typed = {"text": "Otherwise."} if offered.name == "edit" else TYPED.get(offered.name, {})
        answer = send(person, driver.card(thread.id), offered.name, **typed)
        assert answer.status_code == 303, (offered.name, words_of(answer.text))
        after = driver.get(thread.id)
        assert (after.entered > thread.entered) is (offered.name != "later"), offered.name
