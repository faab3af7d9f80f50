"""Hints for edits: an old text that is not there, a lint that refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...util.text import collapse
from ..excerpts import literal, shortened_line
from .moment import Moment

_MISSED = re.compile(
    r"could not find the following lines|not found in |did not appear verbatim|string to replace (?:was )?not found"
    r"|no replacement was performed|no match(?:es)? (?:was |were )?found|does not (?:match|appear)|could not find the",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r"multiple (?:occurrences|matches)|found (?:\d+|several|multiple) (?:times|matches|occurrences)|not unique",
    re.IGNORECASE,
)
_OLD_ARGUMENTS = ("old_str", "old_string", "old_text", "oldText", "old", "search", "target", "find")
_OLD_BLOCK = re.compile(r"(?:<<<BEFORE_EDIT>>>|<{5,9} ?SEARCH)\n(.*?)\n?(?:<<<AFTER_EDIT>>>|={5,9}\n)", re.DOTALL)
_NUMBERED = re.compile(r"\s*\d{1,6}(?:\t|→|[:|]\s)")
_LINT = re.compile(r"^\s*-? ?([EFW]\d{3,4}) (.{1,150})$", re.MULTILINE)
_RANGE = re.compile(r"\Aedit (\d+):(\d+)\n(.*?)\n?(?:end_of_edit)?\s*\Z", re.DOTALL)
_ORIGINAL = "original code before your edit"


def not_found(moment: Moment) -> str:
    """Compare the text that was to be replaced with what the result and the run have shown."""
    text = moment.reading.text
    if not (moment.kind.changes and moment.failed and moment.own) or not _MISSED.search(text[:4_000]):
        return ""
    if _SEVERAL.search(text[:600]):
        return ""
    old = _old_text(moment.call.arguments)
    lines = [line for line in old.split("\n") if line.strip()]
    if not lines:
        return ""
    if all(_NUMBERED.match(line) for line in lines):
        shown = literal(shortened_line(lines[0], 40))
        return f"Each line of the text to be replaced begins with a number, as in {shown}: a listing adds that."
    if found := _goes_on(lines, text):
        return found
    if len(lines) >= 4:
        have = f"The text to be replaced has {len(lines)} lines, which all have to match"
        return f"{have}; one line that the file has once is enough to place a change."
    return ""


def _old_text(given: object) -> str:
    if isinstance(given, Mapping):
        for name in _OLD_ARGUMENTS:
            if isinstance(given.get(name), str):
                return str(given[name])[:8_000]
        given = next(
            (value for value in given.values() if isinstance(value, str) and _OLD_BLOCK.search(value[:8_000])), ""
        )
    found = _OLD_BLOCK.search(given[:8_000]) if isinstance(given, str) else None
    return found[1] if found else ""


def _goes_on(lines: list[str], text: str) -> str:
    """Say where the part of the file that the result shows as the nearest leaves the text to be replaced."""
    blocks = text[:8_000].split("```")[1::2]
    if "partially matched" not in text or len(blocks) < 2:
        return ""
    shown = [line for line in blocks[-1].split("\n") if line.strip()]
    same = [collapse(line) for line in shown]
    if collapse(lines[0]) not in same:
        return f"The part of the file that the result shows as the nearest does not have the line {_line(lines[0])}."
    at = same.index(collapse(lines[0]))
    for wanted, there, before in zip(lines[1:], shown[at + 1 :], shown[at:], strict=False):
        if collapse(wanted) != collapse(there):
            goes_on = f"the file goes on with {_line(there)}, and the text to be replaced with {_line(wanted)}"
            return f"After {_line(before)} {goes_on}."
    return ""


def _line(line: str) -> str:
    return literal(shortened_line(line.strip(), 70))


def refused_by_lint(moment: Moment) -> str:
    """Compare what a lint complains of with the lines of the edit that it refused."""
    text = moment.reading.text[:8_000]
    given = moment.call.arguments
    said = (
        next((value for value in given.values() if isinstance(value, str)), "") if isinstance(given, Mapping) else given
    )
    ranged = _RANGE.match(said[:8_000]) if isinstance(said, str) else None
    found = _LINT.findall(text.partition("This is how")[0]) if moment.failed and moment.own else []
    if not found or ranged is None:
        return ""
    first, last, new = int(ranged[1]), int(ranged[2]), ranged[3].split("\n")
    count, (code, complaint) = len(found), found[0]
    if code.startswith("E1") and count > len(new):
        complaints = f"{count} complaints such as {literal(f'{code} {complaint}')}"
        others = f"at least {count - len(new)} are about lines that the edit does not touch"
        return f"The refusal has {complaints}, and the edit has {len(new)} line{'s' * (len(new) != 1)}: {others}."
    names = {match[1] for _, said in found if (match := re.search(r"undefined name '(\w+)'", said))}
    if names and not any(re.search(rf"\b{name}\b", ranged[3]) for name in names):
        return f"The refusal names {', '.join(sorted(names)[:4])}, which the lines of the edit do not contain."
    original = dict(re.findall(r"^(\d+):(.*)$", text.partition(_ORIGINAL)[2], re.MULTILINE))
    code_lines = [line for line in new if line.strip() and not line.lstrip().startswith("#")]
    if not code_lines:
        return ""  # what a comment or a blank line cannot cause
    stays = [(number, original.get(str(number), "")) for number in (first - 1, last + 1)]
    if "ndent" in complaint:
        shown = [f"line {number} by {_indent(line)}" for number, line in stays if line.strip()]
        indented = f"The first line of the edit is indented by {_indent(code_lines[0])}"
        return f"{indented}; of those that stay, {' and '.join(shown)}." if shown else ""
    shown = [f"line {number} is {literal(shortened_line(line, 60))}" for number, line in stays if line.strip()]
    return f"The edit replaces lines {first} to {last}. Of those that stay, {' and '.join(shown)}." if shown else ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
