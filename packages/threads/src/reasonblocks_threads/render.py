"""A card as plain text for a terminal.

Text that agents, tools or persons wrote is printed behind a bar on lines of its own, or in quotes within a line, so
that it cannot imitate a line of the card.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from textwrap import wrap
from unicodedata import east_asian_width

from reasonblocks.util.folding import visible

from .phases import CardKind
from .values import Answer, Card, Evidence, Failed, Risk

WIDTH = 96
BAR = "  | "
HANG = "    "
"""The indent of a row that continues the one above, so that a value cannot imitate the next one."""
LINE = "  > "
"""The indent of a row that begins a line of a text with several lines."""
INLINE = 60
"""The columns of a quoted text within a line."""
ID = 24
EVIDENCE_SHOWN = 12
_HEADINGS: dict[CardKind, str] = {
    "confirmation": "Is this right?",
    "clarification": "Something is missing",
    "consent": "May this run?",
    "review": "Is the outcome right?",
    "redirect": "The action did not report success. What next?",
    "cleanup_failure": "The clean-up failed",
}


def render_text(card: Card) -> str:
    """Return a card as text for a terminal, without control, bidi and invisible characters, in lines of 96 columns."""
    parts: tuple[Callable[[Card], Iterator[str]], ...] = (
        _head, _settled, _subject, _why, _problem, _report, _facts, _evidence, _costs, _answers,
    )  # fmt: skip
    return "\n".join(line for part in parts for line in part(card))


def _head(card: Card) -> Iterator[str]:
    yield f"{_HEADINGS[card.kind]}  (card {_plain(card.id)}, {card.kind}, stage {card.stage.value})"
    yield from _foreign(card.title)
    yield "Run: none" if card.run_id is None else f"Run: {_quoted(card.run_id)}, {card.run}"
    yield f"Cause: {_quoted(card.cause)}"
    until = f", open until {_time(card.expires_at)}" if card.expires_at is not None else ""
    later = f", put off until {_time(card.deferred_until)}" if card.deferred_until is not None else ""
    yield f"Asked at {_time(card.opened_at)}{until}{later}"
    if card.parent:
        yield f"Part of thread {_plain(card.parent)}"


def _settled(card: Card) -> Iterator[str]:
    for stage, text in card.passed:
        yield f"Settled {stage.value}:"
        yield from _foreign(text)


def _subject(card: Card) -> Iterator[str]:
    if card.proposal:
        yield f"Proposed {card.stage.value}:"
        yield from _foreign(card.proposal)
    if card.question:
        yield "Question:"
        yield from _foreign(card.question)
    if card.action is not None:
        yield from _action(card)
    if card.author:
        sure = "" if card.confidence is None else f", confidence {card.confidence:.2f}"
        by = "Approved by" if card.kind in ("review", "redirect") else "By"
        yield f"{by}: {_quoted(card.author)}{sure}"


def _action(card: Card) -> Iterator[str]:
    verb = "Approved" if card.kind in ("review", "redirect") else "Proposed"
    yield f"{verb} action: {_quoted(card.action or '')}, with"
    if not card.parameters:
        yield f"{BAR}(no parameters)"
    for name, value in card.parameters.items():
        yield from _exact(_escaped(name), value)
    if not card.checked:
        yield "These values are not checked: they are invalid, or the process that made the card lacks the action."
    yield f"Risk, by the catalogue: {_risk(card.risk)}"
    if card.hash:
        yield f"Hash: {card.hash}"


def _exact(name: str, value: object) -> Iterator[str]:
    """Yield a parameter behind the bar with all its blanks, as JSON; a text of several lines as these, unquoted.

    Hidden characters are escaped, not removed.
    """
    if isinstance(value, str) and "\n" in value:
        yield from _hanging(f"{name} =")
        for line in value.split("\n"):
            yield from _hanging(_escaped(line.replace("\\", "\\\\")), LINE)
    else:
        yield from _hanging(f"{name} = {_escaped(json.dumps(value, ensure_ascii=False, default=str))}")


def _hanging(line: str, first: str = "") -> Iterator[str]:
    """Yield the rows of a line. Each but the last ends after the last blank that fits."""
    width, start = _width(line) - len(HANG), 0
    while start < len(line) or not start:
        row = line[start : start + width]
        if start + width < len(line):
            row = row[: row.rfind(" ") + 1 or width]
        yield f"{BAR}{HANG if start else first}{row}"
        start += len(row) or 1


def _risk(risk: Risk | None) -> str:
    if risk is None:
        return "unknown, because the action is unknown"
    amplifiers = "".join(f", {name}" for name in sorted(risk.amplifiers))
    return f"irreversibility {risk.irreversibility}, regret {risk.regret}{amplifiers}"


def _why(card: Card) -> Iterator[str]:
    if card.why_asking:
        yield "Why a person is asked:"
    for failed in card.why_asking:
        yield from _behind_bar(_one_line(why(failed)), HANG)


def why(failed: Failed) -> str:
    """Return a sentence why a gate requires a person. It may contain text of others."""
    return _WHY.get(failed.gate, "{gate}: {value}; must be: {limit}").format(
        gate=failed.gate, value=failed.value, limit=failed.limit
    )


_WHY: dict[str, str] = {
    "auto_advance": "the policy asks a person about the {value}; stages that may pass without asking: {limit}",
    "confidence": "the confidence is {value}; it must be {limit}",
    "consent_for": "the policy asks a person about every {value}",
    "kind": "actions of the kind {value} need a person; kinds that may run without one: {limit}",
    "name": "the action {value} needs a person; actions that may run without one: {limit}",
    "irreversibility": "the irreversibility is {value}; without asking, it may be {limit}",
    "regret": "the regret if it is wrong is {value}; without asking, it may be {limit}",
    "amplifiers": "its amplifiers are: {value}; allowed without asking: {limit}",
    "preconditions": "the preconditions do not all hold: {value}",
    "auto": "the catalogue does not allow it without a person",
}


def _problem(card: Card) -> Iterator[str]:
    if card.problem and card.problem != card.report:
        yield "Problem:"
        yield from _foreign(card.problem)


def _report(card: Card) -> Iterator[str]:
    if card.report:
        yield "Report of the action:"
        yield from _foreign(card.report)


def _facts(card: Card) -> Iterator[str]:
    for fact in card.facts:
        yield f"Said by {_quoted(fact.by)}, on {fact.stage.value}:"
        yield from _foreign(fact.text)


def _evidence(card: Card) -> Iterator[str]:
    if not card.evidence:
        return
    hidden = len(card.evidence) - EVIDENCE_SHOWN
    yield "Evidence, written by the agent and its tools (data, not instructions):"
    for piece in card.evidence[-EVIDENCE_SHOWN:]:
        yield from _piece(piece)
    if hidden > 0:
        yield f"  and {hidden} older pieces"


def _piece(piece: Evidence) -> Iterator[str]:
    yield f"  {_quoted(piece.id, ID)} {_quoted(piece.label)}{' (private)' if piece.blob else ''}"
    if piece.text:
        yield from _foreign(piece.text)


def _costs(card: Card) -> Iterator[str]:
    spent, budget = card.spent, card.budget
    if spent.calls:
        yield (
            f"Spent: {spent.calls} of {budget.calls} calls, {spent.tokens:,} of {budget.tokens:,} tokens, "
            f"{spent.usd:.2f} of {budget.usd:.2f} USD"
        )
    if card.redirects:
        yield "Redirected once" if card.redirects == 1 else f"Redirected {card.redirects} times"


def _answers(card: Card) -> Iterator[str]:
    yield "Answers:"
    width = max((len(answer.name) for answer in card.answers), default=0)
    for answer in card.answers:
        yield f"  {answer.name.ljust(width)}  {answer.label}{_fields(answer)}"
    if card.actions and any("action" in answer.takes for answer in card.answers):
        yield from wrap(f"Available actions: {', '.join(map(_plain, card.actions))}", WIDTH, subsequent_indent="  ")


def _fields(answer: Answer) -> str:
    needs = f"needs: {', '.join(answer.needs)}" if answer.needs else ""
    takes = f"takes: {', '.join(answer.takes)}" if answer.takes else ""
    return f" ({'; '.join(filter(None, (needs, takes)))})" if needs or takes else ""


def _foreign(text: str) -> Iterator[str]:
    """Yield somebody else's text, each line behind the bar."""
    for line in text.splitlines() or ("",):
        yield from _behind_bar(visible(line.expandtabs(4)))


def _behind_bar(line: str, hang: str = "") -> Iterator[str]:
    for row in wrap(line, _width(line), subsequent_indent=hang, break_on_hyphens=False) or ("",):
        yield f"{BAR}{row}".rstrip()


def _width(line: str) -> int:
    """Return the characters of a row behind the bar: half if some take two columns."""
    wide = not line.isascii() and any(east_asian_width(char) in "WF" for char in line)
    return (WIDTH - len(BAR)) // (2 if wide else 1)


def _one_line(text: str) -> str:
    return " ".join(visible(" ".join(text.split())).split())


def _quoted(text: str, columns: int = INLINE) -> str:
    """Return a short text of somebody else in quotes, on one line."""
    line, taken = _one_line(text[: 4 * columns]), 0
    for at, char in enumerate(line):
        taken += 2 if char in '"\\' or east_asian_width(char) in "WF" else 1
        if taken > columns:
            return json.dumps(f"{line[:at]}…", ensure_ascii=False)
    return json.dumps(line, ensure_ascii=False)


def _plain(text: str) -> str:
    return _one_line(text)


def _escaped(text: str) -> str:
    """Return the text with the escapes of JSON in place of characters that nobody would see."""
    return "".join(char if char == " " or (visible(char) and not char.isspace()) else _escape(char) for char in text)


def _escape(char: str) -> str:
    found = json.dumps(char)[1:-1]
    return found if found != char else f"\\u{ord(char):04x}"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
