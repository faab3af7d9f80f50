"""Shows the threads of an org with their cards, and takes the answers of persons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from ..answers import CardIsClosed, answer_card
from ..errors import ApiError
from ..threads import OrgThreads
from ._answer_forms import WrongField, forms_of, read_answer_form
from ._pages import back, render
from ._paths import thread_href, with_query
from ._thread_words import ANSWERS, PHASES, QUESTIONS, entries_of
from ._visit import Refusal, Visit

if TYPE_CHECKING:
    from reasonblocks_threads import Card, Listed, Phase, Threads

LIST = "/ui/threads"
MOST = 100
"""Rows of a list."""
LINES = 500
"""The most lines of a log that a page shows: the newest ones."""
SHOWN_EVIDENCE = 12
"""Pieces of evidence that are shown at once: the newest ones."""
EMPTY: Mapping[str, str] = {
    "": "No card is open", "progress": "No thread is in progress", "later": "No card is put off",
    "ended": "No thread has ended",
}  # fmt: skip
TABS: Mapping[str, str] = {"": "Waiting for a person", "progress": "In progress", "later": "Put off", "ended": "Ended"}


def threads(visit: Visit) -> Response:
    """Show the open cards, or the threads of another tab."""
    visit.needs_whole_org()
    shown = visit.asked("show") if visit.asked("show") in TABS else ""
    tabs = [(words, with_query(LIST, {"show": name}), name == shown) for name, words in TABS.items()]
    if visit.server.threads is None:
        return render(visit, "threads.html", "", is_on=False, switched_off=SWITCHED_OFF)
    with visit.server.threads.of(visit.org) as org:
        cards, rows = _listed(org, shown, visit.now)
    return render(
        visit,
        "threads.html",
        "Threads",
        is_on=True,
        tabs=tabs,
        shown=shown,
        cards=cards,
        rows=rows,
        most=MOST,
        empties=EMPTY,
        questions=QUESTIONS,
        phases=PHASES,
    )


def _listed(org: Threads, shown: str, now: float) -> tuple[Sequence[Card], Sequence[Listed]]:
    """Return the cards or the threads of a tab."""
    from reasonblocks_threads import Phase

    if shown == "":
        return org.cards(limit=MOST), ()
    if shown == "later":
        cards = org.cards(deferred=True, limit=10 * MOST)
        return [card for card in cards if (card.deferred_until or 0.0) > now][:MOST], ()
    ended = shown == "ended"
    phases = [phase for phase in Phase if phase.is_terminal is ended and not phase.waits]
    return (), _of_phases(org, phases, live=not ended)


def _of_phases(org: Threads, phases: Iterable[Phase], *, live: bool) -> list[Listed]:
    rows = [row for phase in phases for row in org.list(live=live, phase=phase, limit=MOST)]
    return sorted(rows, key=lambda row: row.changed_at, reverse=True)[:MOST]


def thread(
    visit: Visit, thread_id: str, *, typed: Mapping[str, str] | None = None, problem: str = "", code: int = 200
) -> Response:
    """Show a thread with its card and its log; the id may be that of one of its cards.

    `problem` is the reason why the answer `typed` was refused.
    """
    used = _used(visit)
    from reasonblocks_threads.render import why

    with used.of(visit.org) as org:
        found = org.get(_thread_of(thread_id))
        card = org.card(f"{found.id}.{found.entered}").card if found.phase.waits else None
        entries = entries_of(org.log(found.id, after=max(0, found.version - LINES)))
        children = org.list(live=False, parent=found.id, limit=MOST)
    return render(
        visit,
        "one_thread.html",
        "Threads",
        code,
        thread=found,
        card=card,
        question=QUESTIONS.get(card.kind, "") if card else "",
        forms=_forms(card, typed, problem) if card else (),
        problem=problem,
        where=PHASES[found.phase.value],
        phases=PHASES,
        why=why,
        entries=entries,
        left_out=max(0, found.version - LINES),
        children=children,
        shown_evidence=SHOWN_EVIDENCE,
        report=found.execution.report if found.execution else None,
    )


def _forms(card: Card, typed: Mapping[str, str] | None, problem: str) -> Sequence[Any]:
    from reasonblocks_threads.cards import ANSWERS as BY_KIND

    return forms_of(card, [*BY_KIND[card.kind]], typed, problem)


def _thread_of(id: str) -> str:
    """Return the id of a thread from its own or that of one of its cards."""
    thread_id, dot, seq = id.rpartition(".")
    return thread_id if dot and seq.isdecimal() else id


def answer(visit: Visit, thread_id: str) -> Response:
    """Take a person's answer to a card. Show a refused one again, with the reason."""
    used, form = _used(visit), visit.form
    card_id, what = form.get("card", ""), form.get("answer", "")
    try:
        with used.of(visit.org) as org:
            card = org.card(card_id).card
        if card.thread_id != thread_id:
            raise ApiError(404, "this thread has no such card")
        given = read_answer_form(card, what, form, visit.now)
        answer_card(used, visit.key, card_id, what, form.get("hash", ""), given)
    except CardIsClosed as closed:
        return _closed(visit, closed)
    except WrongField as error:
        return thread(visit, thread_id, typed=form, problem=str(error), code=422)
    except ApiError as error:
        if error.status != 422:
            raise
        return thread(visit, thread_id, typed=form, problem=f"The answer was refused: {error.detail}.", code=422)
    visit.audit("card.answer", f"{card_id} {what}")
    return back(thread_href(thread_id), "card-later" if what == "later" else "card-answered")


def _closed(visit: Visit, closed: CardIsClosed) -> Response:
    did = ANSWERS.get(closed.answer or "", "answered it")
    return render(visit, "card_closed.html", "Threads", 409, closed=closed, did=did)


def _used(visit: Visit) -> OrgThreads:
    """Return the threads of the server. Raises `Refusal` without them, and for a key that is bound to a project."""
    visit.needs_whole_org()
    if visit.server.threads is None:
        raise Refusal(404, "No threads", SWITCHED_OFF)
    return visit.server.threads


SWITCHED_OFF = (
    "This server has no database of threads: start it with --threads and the database of your agents' threads."
)


def of_run(visit: Visit, run_id: str) -> Sequence[Listed]:
    """Return the live threads about a run; none if the key may not see them, or while they are not available."""
    if visit.server.threads is None or visit.key.project_id is not None:
        return ()
    try:
        with visit.server.threads.of(visit.org) as org:
            return org.list(run_id=run_id, limit=MOST)
    except ApiError:
        return ()
