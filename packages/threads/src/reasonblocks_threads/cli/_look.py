"""The commands that read threads or do due work: list, show, watch, drain and doctor."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..phases import Phase
from ..values import Thread, ThreadEvent
from ._output import OK, PROBLEM, say, show, warn
from ._plain import card_id_of, line_of, say_card, say_json, summary_of, thread_id_of, time_of

if TYPE_CHECKING:
    from ..threads import Threads

PAGE = 1_000
_HEAD = ("thread", "phase", "changed", "open card", "run", "title")


def list_threads(threads: Threads, arguments: Namespace) -> int:
    found = threads.list(
        live=not arguments.all, run_id=arguments.run, phase=arguments.phase, limit=arguments.limit
    )  # fmt: skip
    if arguments.json:
        for each in found:
            say_json(each)
    elif found:
        rows = [
            (each.id, each.phase.value, time_of(each.changed_at), each.card or "", each.run_id or "", each.title)
            for each in found
        ]
        show(f"{len(found)} thread{'' if len(found) == 1 else 's'}", [_HEAD, *rows])
    else:
        warn(
            "there is no such thread" if arguments.all else "no such thread is live; --all shows those that have ended"
        )
    return OK


def show_thread(threads: Threads, arguments: Namespace) -> int:
    thread = threads.get(thread_id_of(arguments.id))
    log = threads.log(thread.id) if arguments.log else ()
    if arguments.json:
        for value in (thread, *log):
            say_json(value)
        return OK
    say(summary_of(thread))
    card = card_id_of(thread)
    if card:
        say_card(threads.card(card).card)
    else:
        _say_thread(thread)
    for event in log:
        say(line_of(event))
    return OK


def _say_thread(thread: Thread) -> None:
    say(f"  title: {thread.cause.title}")
    if thread.problem and not thread.phase.is_terminal:
        say(f"  problem: {thread.problem.text}")
    if thread.execution and thread.execution.report:
        say(f"  report of {thread.execution.action}: {thread.execution.report.summary}")
    for child in thread.children:
        say(f"  part: {child.id}  {child.ended.value if child.ended else 'live'}")


def watch(threads: Threads, arguments: Namespace) -> int:
    after = _end(threads) if arguments.after is None else arguments.after
    while True:
        events = threads.feed(after=after, limit=PAGE)
        for event in events:
            _say_event(event, as_json=arguments.json)
            after = event.position or after
        if len(events) < PAGE:
            if arguments.once:
                return OK
            time.sleep(arguments.every)


def _end(threads: Threads) -> int:
    """Return the position of the newest event."""
    after = 0
    events: Sequence[ThreadEvent]
    while events := threads.feed(after=after, limit=PAGE):
        after = events[-1].position or after
    return after


def _say_event(event: ThreadEvent, *, as_json: bool) -> None:
    if as_json:
        say_json(event)
    else:
        say(f"{event.position}  {event.thread_id}  {line_of(event).strip()}{_asks(event)}")


def _asks(event: ThreadEvent) -> str:
    """Return the id of the card that an event opened, to be copied into an answer."""
    opened = event.kind == "phase_changed" and event.data.get("to") in {phase.value for phase in Phase if phase.waits}
    return f"  card {event.thread_id}.{event.seq}" if opened else ""


def drain(threads: Threads, arguments: Namespace) -> int:
    done = threads.drain(limit=arguments.limit)
    if arguments.json:
        say_json({"done": done})
    else:
        say(f"{done} work item{'' if done == 1 else 's'} done")
    return OK


def doctor(threads: Threads, arguments: Namespace) -> int:
    findings = threads.doctor(repair=arguments.repair)
    for finding in findings:
        if arguments.json:
            say_json(finding)
        else:
            repaired = "  (repaired)" if finding.repaired else ""
            say(f"{finding.kind}  {finding.thread_id}  {finding.detail}{repaired}")
    if not findings and not arguments.json:
        say("no problems found")
    return OK if all(finding.repaired for finding in findings) else PROBLEM
