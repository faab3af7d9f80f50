"""What all monitors share of one completed step, computed once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from .._json import evolve
from .._text import clip, ends
from ..types import Step, ToolCall, ToolResult
from .arguments import command_of, flattened, gist_of, longer, values_of
from .outcome import (
    call_digest,
    error_digests,
    hash_of,
    result_digest,
    says_error,
    says_green,
    says_nothing,
    says_passing,
    says_red,
    says_waiting,
)
from .roles import is_shell, roles_of

MAX_CALLS = 16
"""Calls of a step that are looked at from each end of it; likewise results."""
MAX_TARGETS = 4
"""Files, ids and the like that one step is said to touch, at most."""
TASK_HEAD = 4_000
"""Characters of the task that any monitor looks at, and that caches hold on to."""
TARGET_HEAD = 1_000
"""Characters of the arguments within which targets are looked for."""
READ_HEAD = 80
"""Characters of what was read or searched within which it may announce an error of its own."""
SHORT_LOOK = 60
"""Characters of what a look brings that hardly can be more than "nothing found"."""
SAYS_SO = 8
"""Characters of a result that says in words that there was nothing: not "None", not "[]"."""
NAME_LENGTH = 48
"""Characters of a tool name that a text shows."""

_TARGET = re.compile(
    r"(?<![\w.~/-])(?:[\w.~-]*/)+[\w.-]+|(?<![\w-])[\w-]+\.[A-Za-z]\w{0,4}\b|#?\b[A-Za-z_]*\d[\w-]{2,}"
)
"""What looks behind is tried once in each name, not at every letter of it."""
_TARGET_MARK = re.compile(r"[/.\d]")
"""Every target has one of these: most words of an argument never meet the long pattern."""
_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_UNSAFE = re.compile(r"[^\w-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """One step as the monitors see it. `call` and `result` are hashes, None where there was none.

    `asked`: how often the task wants something done again. `failing`: a result is an error, or a test's that says that
    something failed. `error`: a hash of what it says, `error_kind` of its first words, None for a test's, whose errors
    are work. `passing`: it says that it may pass, so that the same call may be right a moment later.
    `green`: a test says that all went well.
    `waiting`: a result says that asking again is right. `empty`: there was nothing, by all results. `shell`: a command
    was run.
    `targets` and `kinds` are hashes of files or ids, and of tools, or with a shell of the programs that it starts.
    `gist` are hashes of the arguments' words, endings aside, where there was nothing, `given` the longer ones of those
    words in any case. `lengths` are the characters of thought, arguments and results.
    """

    index: int
    task: str
    asked: int
    thought: str
    words: Sequence[str]
    vocabulary: frozenset[str]
    tool: str
    call: int | None
    result: int | None
    failing: bool
    error: int | None
    error_kind: int | None
    passing: bool
    green: bool
    waiting: bool
    empty: bool
    roles: frozenset[str]
    shell: bool
    targets: tuple[int, ...]
    kinds: tuple[int, ...]
    gist: tuple[int, ...]
    given: frozenset[str]
    lengths: tuple[int, int, int]


def features_of(step: Step, index: int, task: str = "", tool_roles: Mapping[str, str] = _NO_NAMES) -> Features:
    """Everything once, from at most 16,000 characters of each text, and 32 calls and results."""
    step, task = _bounded(step), task[:TASK_HEAD]
    thought = clip(step.thought if step.thought.strip() else step.reasoning).lower()
    spoken = step.scored_words if thought.strip() else ()
    calls = [(call, flattened(call.arguments), command_of(call)) for call in step.tool_calls]
    roles = frozenset([role for call, flat, said in calls for role in roles_of(call.name, said, flat, tool_roles)])
    results, outputs = step.tool_results, [result.output for result in step.tool_results]
    errors = [error for result in results if (error := _error(result, roles)) is not None]
    values = values_of(calls)
    empty = bool(outputs) and all(_found_nothing(output, roles) for output in outputs)
    said = error_digests(errors[0]) if errors and "test" not in roles else None
    return Features(
        index=index,
        task=task,
        asked=asked_for(task),
        thought=thought,
        words=spoken,
        vocabulary=frozenset(spoken),
        tool=_tool(step.tool_calls),
        call=_action(calls) if _does_something(step) else None,
        result=_outcome(outputs) if outputs else None,
        failing=bool(errors),
        error=said[0] if said else None,
        error_kind=said[1] if said else None,
        passing=any(map(says_passing, [result.output for result in results if result.is_error is not False])),
        green="test" in roles and not errors and any(map(says_green, outputs)),
        waiting=any(map(says_waiting, outputs)),
        empty=empty,
        roles=roles,
        shell=any(map(is_shell, [call.name for call in step.tool_calls])),
        targets=_targets([flat for _, flat, _ in calls]),
        kinds=tuple([hash_of(f"{call.name} {said[:40].lstrip().partition(' ')[0]}") for call, _, said in calls]),
        gist=gist_of(values) if empty else (),
        given=longer(values),
        lengths=(
            len(thought),
            sum([len(flat) for _, flat, _ in calls]),
            sum(map(len, outputs)),
        ),
    )


def _bounded(step: Step) -> Step:
    if max(len(step.tool_calls), len(step.tool_results)) <= 2 * MAX_CALLS:
        return step
    return evolve(step, tool_calls=ends(step.tool_calls, MAX_CALLS), tool_results=ends(step.tool_results, MAX_CALLS))


def _does_something(step: Step) -> bool:
    """A name alone, with nothing given and nothing back, is a hand-over to another agent: no action to repeat."""
    return bool(step.tool_results) or any(call.arguments for call in step.tool_calls)


def _tool(calls: Sequence[ToolCall]) -> str:
    if len(calls) == 1:
        return plain(calls[0].name)
    return " + ".join(dict.fromkeys([plain(call.name) for call in calls]))[:NAME_LENGTH].rstrip(" +")


def plain(name: str) -> str:
    """A name that a text may show: letters, digits, "-" and "_"."""
    name = name[:NAME_LENGTH]
    return name if name.isidentifier() else _UNSAFE.sub("_", name)


def _action(calls: Sequence[tuple[ToolCall, str, str]]) -> int:
    """Parallel calls are one action, whatever their order."""
    return call_digest("\n".join(sorted([f"{call.name} {flat}" for call, flat, _ in calls])))


def _outcome(outputs: Sequence[str]) -> int:
    if len(outputs) == 1:
        return result_digest(outputs[0])
    return hash_of(" ".join(sorted([str(result_digest(output)) for output in outputs])))


def _error(result: ToolResult, roles: frozenset[str]) -> str | None:
    """The text of an error. The result's own flag goes before its words; what is read may speak of errors freely."""
    text = clip(result.output)
    if "test" in roles and says_red(text):
        return text  # though the call itself went well
    if result.is_error is False:
        return None
    looks = not roles.isdisjoint(("read", "search"))
    if result.is_error:
        return None if looks and not text.strip() else text  # a search that finds nothing exits with 1
    return text if says_error(text[:READ_HEAD] if looks else text) else None


def _found_nothing(output: str, roles: frozenset[str]) -> bool:
    """Of a look, a short answer, in whatever language; of another call one that says so: "None" is how it goes well."""
    if not roles.isdisjoint(("read", "search")):
        return len(output) <= SHORT_LOOK or says_nothing(output)
    return "edit" not in roles and len(output) >= SAYS_SO and says_nothing(output)


def _targets(arguments: Sequence[str]) -> tuple[int, ...]:
    """The first few, looked for in one blank-separated part after the other: no target has a blank in it."""
    found: dict[str, None] = {}
    for part in " ".join([flat[:TARGET_HEAD] for flat in arguments]).split():
        if part.isalpha() or not _TARGET_MARK.search(part):
            continue
        for name in _TARGET.findall(part):
            found[name] = None
            if len(found) == MAX_TARGETS:
                return tuple(map(hash_of, found))
    return tuple(map(hash_of, found))


SEVERAL = 10
"""What "several times" allows."""
MOST = 50

_COUNT = re.compile(
    r"\b(?:(?:(\d{1,3})|(two)|(three)|(four)|(five)|(six)|(seven)|(eight)|(nine)|(ten)|(a dozen)|(several|many|a few))"
    r"[ -](?:more )?(?:times(?! (?:as|more|less|larger|smaller|the)\b)|runs|rolls|samples|calls|tries|attempts"
    r"|repetitions|measurements)|(repeatedly|again and again))\b",
    re.IGNORECASE,
)
_NUMBERS = (0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, SEVERAL, SEVERAL)
"""What the groups of `_COUNT` after the first mean, by their number."""


@lru_cache(maxsize=64)
def asked_for(task: str) -> int:
    """How often the task itself wants something done again, 0 where it does not say so."""
    most = 0
    for found in _COUNT.finditer(task[:TASK_HEAD]):
        at = found.lastindex or 1
        most = max(most, min(MOST, int(found[1])) if at == 1 else _NUMBERS[at - 1])
    return most
