"""The command that answers a card, and then does due work."""

from __future__ import annotations

import argparse
import getpass
import json
import re
import time
from argparse import Namespace
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, get_args

from ..errors import Refused
from ..phases import AnswerName, Stage
from ..values import Actor, Card, Thread
from ._output import OK, FlagError, say
from ._plain import card_id_of, one_of, say_card, say_json, summary_of, thread_id_of

if TYPE_CHECKING:
    from ..threads import Threads

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_FLAGS = {
    "text": "--text", "parameters": "--set", "to": "--to", "until": "--until", "action": "--action",
    "stage": "--stage", "reason": "--reason",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "card",
        metavar="CARD",
        help="the id of a card; for all answers but approve, the id of a thread means its open card",
    )
    parser.add_argument("what", metavar="ANSWER", choices=get_args(AnswerName), help=", ".join(get_args(AnswerName)))
    parser.add_argument("--text", help="a correction, the missing information, or the reason for a redirect")
    parser.add_argument(
        "--set", dest="parameters", type=_pair, action="append", default=[], metavar="KEY=VALUE",
        help="a parameter of the action, as JSON if it is valid JSON, otherwise as text; may be repeated; an edit "
        "keeps the others; quotes make a number a text: 'version=\"1.4\"'",
    )  # fmt: skip
    parser.add_argument("--action", metavar="NAME", help="the action to choose")
    parser.add_argument("--to", metavar="WHO", help="the person or team that takes over")
    parser.add_argument("--stage", type=one_of(Stage), metavar="STAGE", help="intent, context or action")
    parser.add_argument("--reason", help="a reason for the log")
    parser.add_argument("--until", type=_until, metavar="WHEN", help="30m, 4h, 2d, or a time such as 2030-01-31T09:00")
    parser.add_argument("--by", type=_name, metavar="NAME", help="your name for the log (the login name)")


def answer(threads: Threads, arguments: Namespace) -> int:
    what: AnswerName = arguments.what
    card = _card(threads, arguments.card, what)
    if what == "accept" and card.kind == "cleanup_failure":
        what = "accept_failure"
    _check_needed(card, what, arguments)
    thread = threads.answer(
        card.id, what, by=Actor.person(arguments.by or _login()), text=arguments.text,
        parameters=_parameters(card, what, arguments), action=arguments.action, to=arguments.to,
        stage=arguments.stage, reason=arguments.reason, until=arguments.until,
    )  # fmt: skip
    done = threads.drain()
    _say_outcome(threads, threads.get(thread.id), done, as_json=arguments.json)
    return OK


def _card(threads: Threads, id: str, what: AnswerName) -> Card:
    """Return the card of this id, closed or not, or the open card of the thread of this id.

    An approval names its card: the thread may have another card by now, with an action that nobody has seen.
    """
    if thread_id_of(id) != id:
        return threads.card(id).card
    thread = threads.get(id)
    found = card_id_of(thread)
    if found is None:
        raise Refused(id, "answer", f"no card is open; the phase is {thread.phase.value!r}")
    if what == "approve":
        raise Refused(id, what, f"it needs the id of the card that you saw; the open one is {found!r}")
    return threads.card(found).card


def _check_needed(card: Card, what: AnswerName, arguments: Namespace) -> None:
    for offered in card.answers:
        for field in offered.needs:
            if offered.name == what and not getattr(arguments, field):
                raise FlagError(_FLAGS[field], f"is needed for {what!r}")


def _parameters(card: Card, what: AnswerName, arguments: Namespace) -> Mapping[str, object] | None:
    """Return the given parameters; an edit keeps the others, and texts stay texts."""
    before = card.parameters if what == "edit" and arguments.action in (None, card.action) else {}
    return {name: _value(text, before.get(name)) for name, text in arguments.parameters} or None


def _value(text: str, before: object) -> object:
    """Return JSON as its value and anything else as text, as is a number in place of a text."""
    try:
        found: object = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(before, str) and not isinstance(found, str) else found


def _refuse(constant: str) -> object:
    raise ValueError(constant)


def _say_outcome(threads: Threads, thread: Thread, done: int, *, as_json: bool) -> None:
    card = card_id_of(thread)
    if as_json:
        say_json({"thread": thread.id, "phase": thread.phase, "stage": thread.stage, "version": thread.version,
                  "reason": thread.reason, "card": card, "done": done})  # fmt: skip
        return
    say(summary_of(thread))
    if card:
        say_card(threads.card(card).card)
    elif thread.phase.is_terminal:
        if thread.execution and thread.execution.report:
            say(f"  {thread.execution.action}: {thread.execution.report.summary}")
    else:
        say("  it continues in a process that has the code it needs and drains: Threads.drain() or Threads.worker()")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key.strip(), value


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("a name must not be empty")
    return text.strip()


def _until(text: str) -> float:
    if found := re.fullmatch(r"([0-9]{1,6})([smhd])", text):
        return time.time() + int(found[1]) * _UNITS[found[2]]
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a duration such as 30m, 4h or 2d nor a time in ISO 8601"
        ) from None


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise FlagError("--by", "is needed, because this user has no login name") from None
