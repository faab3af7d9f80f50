"""The features of one completed step that the monitors share, computed once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from ..types import Novelty, Step, ToolCall, ToolResult
from ..util.json import evolve
from ..util.text import clip, ends
from .arguments import command_of, flattened, gist_of, longer, values_of
from .outcome import (
    SHORT,
    call_digest,
    error_digests,
    hash_of,
    result_digest,
    says_counts,
    says_error,
    says_green,
    says_nothing,
    says_passing,
    says_red,
    says_refused,
    says_waiting,
)
from .roles import is_shell, roles_of

MAX_CALLS = 16
"""Calls, and results, of a step that are read from each end."""
MAX_TARGETS = 4
"""Targets (files, ids and the like) of one step: the first ones."""
TASK_HEAD = 4_000
"""Characters of the task that monitors read and caches hold."""
TARGET_HEAD = 1_000
"""Characters of each call's arguments in which targets are looked for."""
READ_HEAD = 80
"""Characters of the result of a read or a search in which an error of its own can be announced."""
SHORT_LOOK = 60
"""A result of a read or a search up to this length, in characters, is hardly more than "nothing found"."""
WORDED = 8
"""Characters from which on a result expresses in words that there was nothing: not "None", not "[]"."""
LOOKS = frozenset(("read", "search", "test"))
ACKNOWLEDGED = 40
"""A result shorter than this, in characters, only acknowledges that something was done."""
NAME_LENGTH = 48
"""Characters of a tool's name that a text shows."""

_TARGET = re.compile(
    r"(?<![\w.~/-])(?:[\w.~-]*/)+[\w.-]+|(?<![\w-])[\w-]+\.[A-Za-z]\w{0,4}\b|#?\b[A-Za-z_]*\d[\w-]{2,}"
)
"""A path, a file name, or an id. The look-behinds make it match at the start of a name only, not at each letter."""
_MARKED = re.compile(r"(?<!\S)[^\s/.\d]*[/.\d]\S*")
"""A word with one of the marks that are in every target: the long pattern is tried in such words only."""
_NO_NAMES: Mapping[str, str] = MappingProxyType({})
NOTHING_KNOWN = Novelty()
"""The news of a run's first step: everything is new."""
_UNSAFE = re.compile(r"[^\w-]+")


@dataclass(slots=True, kw_only=True)  # not frozen, because each step makes one and a frozen one takes twice as long
class Features:
    """One step as the monitors see it. `call` and `result` are hashes, None for none.

    - `thought`: in lower case; `said`: as the agent wrote it.
    - `asked`: how often the task wants something repeated.
    - `failing`: a result is an error, or reports a failed test; `errors` has the texts of those results. `error` is a
      hash of the first one, `error_kind` of its first words; both are None for a test, whose errors are work.
    - `passing`: the error may pass, so that the same call may succeed a moment later.
    - `changed`: something was edited; a refused edit changes nothing, and is an error.
    - `tested`: a change came back with the totals of a test run. `green`: a test passed.
    - `waiting`: a result reports a running process, so that asking again is right.
    - `empty`: no result contains anything.
    - `shell`: a command was run.
    - `targets`: hashes of files and ids, of a command or an edit. `kinds`: hashes of the programs that a shell starts.
    - `given`: the longer words of the arguments. `gist`: hashes of their stems, only if the step is `empty`.
    - `lengths`: characters of the thought, the arguments and the results.
    - `brought`: what the step brought that was not there before. `stale`: that was nothing, although something new was
      to be expected: a running process, an error that may pass and a test that still passes take their time.
    - `moves`: the step does something, and only an acknowledgement comes back.
    - `lasting`: the chance that the trouble lasts, 0 to 1; `known_row`: how many of the newest steps in a row, at most
      eight, brought what earlier results had. Both are 0 until the suite has estimated them.
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
    errors: tuple[str, ...]
    error: int | None
    error_kind: int | None
    passing: bool
    changed: bool
    tested: bool
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
    brought: Novelty
    stale: bool
    moves: bool
    said: str = ""
    lasting: float = 0.0
    known_row: int = 0

    @property
    def barren(self) -> bool:
        """True if the step brought nothing new; a change is work, and an acknowledgement of an action says nothing."""
        looks = self.shell or not self.roles.isdisjoint(("read", "search"))
        says = self.lengths[2] >= ACKNOWLEDGED or self.failing or (looks and self.brought.same_result)
        return self.stale and says and not self.changed


def features_of(
    step: Step,
    index: int,
    task: str = "",
    tool_roles: Mapping[str, str] = _NO_NAMES,
    brought: Novelty = NOTHING_KNOWN,
) -> Features:
    """Return the features of a step, read from at most 16,000 characters of each text, and 32 calls and results."""
    step, task = _bounded(step), task[:TASK_HEAD]
    written = clip(step.thought if step.thought.strip() else step.reasoning)
    thought = written.lower()
    spoken = step.scored_words if thought.strip() else ()
    calls = [(call, flattened(call.arguments), command_of(call)) for call in step.tool_calls]
    roles = frozenset([role for call, flat, said in calls for role in roles_of(call.name, said, flat, tool_roles)])
    shell = any(is_shell(call.name, said) for call, _, said in calls)
    results, outputs = step.tool_results, [result.output for result in step.tool_results]
    errors = [error for result in results if (error := _error(result, roles, shell)) is not None]
    values = values_of(calls)
    empty = bool(outputs) and all(_found_nothing(output, roles) for output in outputs)
    said = error_digests(errors[0]) if errors and "test" not in roles else None
    passing = any(map(says_passing, [result.output for result in results if _may_pass(result, bool(errors))]))
    green = "test" in roles and not errors and any(map(says_green, outputs))
    waiting = any(map(says_waiting, outputs))
    moves = not (shell or errors) and roles.isdisjoint(LOOKS) and sum(map(len, outputs)) < ACKNOWLEDGED
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
        errors=tuple(errors),
        error=said[0] if said else None,
        error_kind=said[1] if said else None,
        passing=passing,
        changed="edit" in roles and (not errors or "test" in roles),
        tested="edit" in roles and any(map(says_counts, outputs)),
        green=green,
        waiting=waiting,
        empty=empty,
        roles=roles,
        shell=shell,
        targets=_targets([flat for _, flat, _ in calls]) if shell or "edit" in roles else (),
        kinds=_kinds(calls) if shell else (),
        gist=gist_of(values) if empty else (),
        given=longer(values),
        lengths=(
            len(thought),
            sum([len(flat) for _, flat, _ in calls]),
            sum(map(len, outputs)),
        ),
        brought=brought,
        stale=brought.stale and not (passing or green or waiting or moves),
        moves=moves,
        said=written,
    )


def _kinds(calls: Sequence[tuple[ToolCall, str, str]]) -> tuple[int, ...]:
    return tuple([hash_of(f"{call.name} {said[:40].lstrip().partition(' ')[0]}") for call, _, said in calls])


def _bounded(step: Step) -> Step:
    if max(len(step.tool_calls), len(step.tool_results)) <= 2 * MAX_CALLS:
        return step
    return evolve(step, tool_calls=ends(step.tool_calls, MAX_CALLS), tool_results=ends(step.tool_results, MAX_CALLS))


def _does_something(step: Step) -> bool:
    """Return False for calls without arguments or results: a hand-over to another agent is no action to repeat."""
    results = step.tool_results
    return any(call.arguments for call in step.tool_calls) or any(
        result.output or result.is_error for result in results
    )


def _tool(calls: Sequence[ToolCall]) -> str:
    if len(calls) == 1:
        return plain(calls[0].name)
    return " + ".join(dict.fromkeys([plain(call.name) for call in calls]))[:NAME_LENGTH].rstrip(" +")


def plain(name: str) -> str:
    """Return a name that a text may show: letters, digits, "-" and "_"."""
    name = name[:NAME_LENGTH]
    return name if name.isidentifier() else _UNSAFE.sub("_", name)


def _action(calls: Sequence[tuple[ToolCall, str, str]]) -> int:
    """Return a hash of all calls: parallel calls are one action, whatever their order."""
    return call_digest("\n".join(sorted([f"{call.name} {flat}" for call, flat, _ in calls])))


def _outcome(outputs: Sequence[str]) -> int:
    if len(outputs) == 1:
        return result_digest(outputs[0])
    return hash_of(" ".join(sorted([str(result_digest(output)) for output in outputs])))


def _error(result: ToolResult, roles: frozenset[str], shell: bool) -> str | None:
    """Return the text of an error, or None.

    The result's own flag goes before its words, except that an editor may refuse a change without a flag. A text that
    was read or found may mention errors.
    """
    text = clip(result.output)
    if "edit" in roles and not shell and says_refused(text):
        return text
    if "test" in roles and says_red(text):
        return text  # although the call itself succeeded
    if result.is_error is False:
        return None
    looks = not roles.isdisjoint(("read", "search"))
    if result.is_error:
        return None if looks and not text.strip() else text  # a search that finds nothing exits with 1
    return text if says_error(text[:READ_HEAD] if looks else text) else None


def _may_pass(result: ToolResult, failing: bool) -> bool:
    """Return False for content: a file that mentions a timeout is no reason to read it again."""
    return result.is_error is not False and (failing or len(result.output) <= SHORT)


def _found_nothing(output: str, roles: frozenset[str]) -> bool:
    """Return True if there was nothing.

    For a read or a search, any short result in any language; for another call only one that expresses it in words,
    since a successful call may return "None".
    """
    if not roles.isdisjoint(("read", "search")):
        return len(output) <= SHORT_LOOK or says_nothing(output)
    return "edit" not in roles and len(output) >= WORDED and says_nothing(output)


def _targets(arguments: Sequence[str]) -> tuple[int, ...]:
    """Return hashes of the first few targets; no target has a blank in it, so each word is searched alone."""
    found: dict[str, None] = {}
    for part in _MARKED.finditer(" ".join([flat[:TARGET_HEAD] for flat in arguments])):
        for name in _TARGET.findall(part[0]):
            found[name] = None
            if len(found) == MAX_TARGETS:
                return tuple(map(hash_of, found))
    return tuple(map(hash_of, found))


SEVERAL = 10
"""Repetitions that "several times" allows."""
MAX_ASKED = 50
"""Repetitions that a task can ask for."""

_COUNT = re.compile(
    r"\b(?:(?:(\d{1,3})|(two)|(three)|(four)|(five)|(six)|(seven)|(eight)|(nine)|(ten)|(a dozen)|(several|many|a few))"
    r"[ -](?:more )?(?:times(?! (?:as|more|less|larger|smaller|the)\b)|runs|rolls|samples|calls|tries|attempts"
    r"|repetitions|measurements)|(repeatedly|again and again))\b",
    re.IGNORECASE,
)
_NUMBERS = (0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, SEVERAL, SEVERAL)
"""The number that each group of `_COUNT` after the first stands for."""


@lru_cache(maxsize=64)
def asked_for(task: str) -> int:
    """Return how often the task itself wants something repeated; 0 if it does not."""
    most = 0
    for found in _COUNT.finditer(task[:TASK_HEAD]):
        group = found.lastindex or 1
        most = max(most, min(MAX_ASKED, int(found[1])) if group == 1 else _NUMBERS[group - 1])
    return most
