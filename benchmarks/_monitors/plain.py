"""A plain rule for dead steps, which knows nothing of the library's account: the measure, and the rule to beat.

A step is dead if the run would stand where it stands without it:

- the same call as before with nearly the same result, and no change since;
- the same line of an error as one of the tool's last four errors, with no change since;
- a search in vain, at least the third in a row with this tool;
- the same result of more than 80 characters, for the third time.

A change with new content that was not refused, and asking something that runs, are never dead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from reasonblocks.types import Step
from reasonblocks.util.json import canonical

HEAD = 3_000
"""Characters of a result that are compared."""
NEARLY = 0.1
"""Share of a result's words that may be new in nearly the same one."""
_STAMPS = re.compile(
    r"\d{4}-\d\d-\d\d[T ]?[\d:.]*Z?|\d\d:\d\d(?::\d\d)?|\b\d+(?:\.\d+)? ?m?s(?:ec(?:onds)?)?\b|0x[0-9a-f]+|/tmp/\S+"
    r"|\b[0-9a-f]{8}-[0-9a-f-]{20,}"
)
_CHANGES = re.compile(
    r"^\W*(?:edit|write|insert|create|append|replace|str_replace|apply|patch|update|delete|cancel|modify|send|add"
    r"|remove|move|set|book|submit|return)|_(?:edit|patch|write)\b|\bsed -i|<<|>>? ?[\w./~-]|\btee |\bgit (?:apply"
    r"|checkout|commit|reset|stash)|\b(?:pip3?|npm|apt(?:-get)?) (?:un)?install|\b(?:mv|cp|rm|mkdir|touch) "
    r"|\b(?:insert into|delete from|alter table|create table|drop table)\b|\bupdate \S+ set\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"^\W*(?:wait|write_stdin|bash_?output)|\bsleep \d|_status\b|(?:read|get)_output|\bps -", re.IGNORECASE
)
_SEARCHES = re.compile(r"search|find|glob|grep|query|lookup|retrieve|\brg ", re.IGNORECASE)
_LOOKS = re.compile(r"^\W*(?:cd \S+ && ?)?(?:cat|head|tail|sed -n|nl|ls|grep|rg|less|git (?:diff|show|log|status))\b")
_ERRORS = re.compile(
    r"error|exception|traceback|failed|not found|no such|timed out|refused|invalid|cannot|unable|denied|malformed",
    re.IGNORECASE,
)
_NO_ERRORS = re.compile(
    r"\b(?:0|no) (?:errors?|failures?|failed)|\berrors?\W{1,3}(?:0|false|null|none)\b", re.IGNORECASE
)
_NAMED = re.compile(r"\w+Error\b|\berror:|\b[A-Z]\d{3,4}\b")
_NOTHING = re.compile(
    r"\bno (?:matches|results?|files)\b|\bfound 0\b|\bcould not find\b|\[\]\W*$|not found", re.IGNORECASE
)
_REFUSED = re.compile(
    r"no replacement|not unique|could not find|did not (?:match|apply)|missing required|failed to apply|old_str",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Memory:
    changed: int = -1
    last: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    made: set[tuple[str, str]] = field(default_factory=set)
    errors: list[tuple[str, str, int]] = field(default_factory=list)
    vain: Counter[str] = field(default_factory=Counter)
    results: Counter[tuple[str, str]] = field(default_factory=Counter)


def dead_steps(steps: Sequence[Step]) -> list[bool]:
    """Return for each step of a run whether it is dead."""
    memory = _Memory()
    return [_is_dead(step, at, memory) for at, step in enumerate(steps)]


def _is_dead(step: Step, at: int, memory: _Memory) -> bool:
    tool = "+".join([call.name for call in step.tool_calls]) or "say"
    argument = canonical([call.arguments for call in step.tool_calls]) if step.tool_calls else step.thought[:HEAD]
    command = next((str(value) for call in step.tool_calls for value in _values(call.arguments)), "")
    call, output = (tool, argument), "\n".join([result.output for result in step.tool_results])
    same = _STAMPS.sub("#", output[:HEAD])
    asks = bool(_ASKS.search(tool) or _ASKS.search(command[:60]))
    changes = not asks and bool(_CHANGES.search(tool) or _CHANGES.search(command[:HEAD]))
    error = _error(output, command)
    nothing = not output.strip() or (len(output) < HEAD and bool(_NOTHING.search(output)))
    searches = bool(_SEARCHES.search(tool) or _SEARCHES.search(command[:40]))
    new = changes and call not in memory.made
    dead = not asks and (
        (not new and _again(call, same, memory))
        or (error != "" and any(one[:2] == (tool, error) and memory.changed <= one[2] for one in memory.errors[-4:]))
        or (searches and not changes and nothing and memory.vain[tool] >= 2)
        or (not changes and len(output) > 80 and memory.results[tool, same] >= 2)
    )
    if not changes and not asks:
        memory.vain[tool] = memory.vain[tool] + 1 if searches and nothing else 0
    memory.results[tool, same] += 1
    memory.last[call] = at, same
    if new and not (error and _REFUSED.search(output[:400])):
        memory.changed = at
        memory.made.add(call)
    if error:
        memory.errors.append((tool, error, at))
    return dead


def _again(call: tuple[str, str], same: str, memory: _Memory) -> bool:
    """Return True for a call that was made before, with nearly the same result, and no change since."""
    at, before = memory.last.get(call, (-2, ""))
    return memory.changed <= at and _alike(same, before)


def _values(arguments: object) -> list[object]:
    return [*arguments.values()] if isinstance(arguments, dict) else [arguments]


def _error(output: str, command: str) -> str:
    """Return the line of an error, numbers aside; "" for none. What is read may speak of errors."""
    if _LOOKS.search(command) and len(output) > 300:
        return ""
    text = output if len(output) <= 1_500 else f"{output[:300]}\n{output[-600:]}"
    lines = [line.strip() for line in _NO_ERRORS.sub("", text).splitlines() if _ERRORS.search(line)]
    if not lines:
        return ""
    return re.sub(r"\d+", "#", next(filter(_NAMED.search, lines), lines[-1]))[:160]


def _alike(new: str, old: str) -> bool:
    words = {*re.findall(r"\w+", new)}
    return len(words - {*re.findall(r"\w+", old)}) <= NEARLY * len(words)


def spoken(dead: Sequence[bool], needed: int, of: int, cap: int = 5, cooldown: int = 3) -> list[int]:
    """Return the steps after which the plain rule would speak: dead ones with `needed` dead ones `of` the newest."""
    said: list[int] = []
    for at, now in enumerate(dead):
        due = now and sum(dead[max(0, at - of + 1) : at + 1]) >= needed
        if due and len(said) < cap and (not said or at - said[-1] >= cooldown):
            said.append(at)
    return said
