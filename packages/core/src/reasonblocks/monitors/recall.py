"""Remembers the newest actions as text, so that a monitor's text can name the calls and check what it says of them."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from ..types import JSON, Memories, Step, ToolCall
from ..util.json import canonical
from ..util.text import clip
from . import untried
from .arguments import flattened
from .complaints import names_part, says_blocked, says_missing, says_offer
from .ending import checks
from .excerpts import call_line, result_line
from .features import Features
from .memory import count, names, numbers, table
from .outcome import SHORT, error_digests, hash_of, says_nothing
from .roles import NAME_HEAD, trust_of
from .untried import Alternatives

OWN_MEMORY = "_recall"
"""The key of this memory among those of the monitors; snapshots have it."""

MAX_ACTIONS = 20
"""Actions that are remembered by hashes: the newest ones."""
MAX_CALLS, MAX_LINES = 4, 4
"""Different calls, and lines of different results, that are remembered as text: those seen last."""
MANY_TOOLS = 2
"""Different tools that are remembered: more are many."""
MAX_READ = 4
"""Calls, and results, of a step that are read."""
SHORT_HASH = 0xFFFFFF
"""The bits of a hash that are stored: twenty actions collide once in 90,000 runs."""
_FAILED, _SEVERAL, _EDITS, _CHECKS, _EMPTY, _BLANK, _BARE, _LOOKS = 1, 2, 4, 8, 16, 32, 64, 128
_MISSING, _OFFERS, _NAMES, _REFUSED, _QUOTED = 256, 512, 1024, 2048, 4096
"""Flags of an action."""
_SIZES = (8, 3, 3, 3, 3, 3, 2)
"""Bytes of the stored fields of an action."""
_SIZE = sum(_SIZES)
_FIELDS = tuple([(8 * sum(_SIZES[at + 1 :]), 256**size - 1) for at, size in enumerate(_SIZES)])
"""The shift and the mask of each field."""
_TEXTS = frozenset({str})


class Action(NamedTuple):
    """One remembered action.

    `call` and `result` are hashes in which ids, times and the like are masked, `exact_call` and `exact_result` those of
    the exact texts, `error` that of the error's message; 0 for none. `shown` is the call and `line` its result's most
    telling line, "" if it is forgotten or may not be quoted.
    """

    step: int
    call: int
    exact_call: int
    result: int
    exact_result: int
    error: int
    flags: int
    shown: str = ""
    line: str = ""

    @property
    def failed(self) -> bool:
        """True if a result was an error, or reported a failed test."""
        return bool(self.flags & _FAILED)

    @property
    def several(self) -> bool:
        """True for parallel calls."""
        return bool(self.flags & _SEVERAL)

    @property
    def edits(self) -> bool:
        """True if it changed something."""
        return bool(self.flags & _EDITS)

    @property
    def checks(self) -> bool:
        """True if it tested, read or searched something."""
        return bool(self.flags & _CHECKS)

    @property
    def is_empty(self) -> bool:
        """True if nothing was found."""
        return bool(self.flags & _EMPTY)

    @property
    def is_blank(self) -> bool:
        """True if nothing came back."""
        return bool(self.flags & _BLANK)

    @property
    def is_bare(self) -> bool:
        """True for a call without arguments."""
        return bool(self.flags & _BARE)

    @property
    def found(self) -> bool:
        """True for a read or a search that brought something."""
        return bool(self.flags & _LOOKS) and not self.flags & (_FAILED | _EMPTY | _BLANK | _REFUSED)

    @property
    def misses(self) -> bool:
        """True for an error that something does not exist."""
        return bool(self.flags & _MISSING)

    @property
    def offers(self) -> bool:
        """True for an error that offers what would be right."""
        return bool(self.flags & _OFFERS)

    @property
    def names_argument(self) -> bool:
        """True for an error that names a part of the call's arguments."""
        return bool(self.flags & _NAMES)

    @property
    def refused(self) -> bool:
        """True for a short result that refuses the call, whether or not it is an error."""
        return bool(self.flags & _REFUSED)

    @property
    def quotable(self) -> bool:
        """True if the results are the user's own: a text may quote them, and refer to what they ask for."""
        return bool(self.flags & _QUOTED)

    @property
    def outcome(self) -> tuple[int, int]:
        """The call and its result."""
        return self.call, self.result


class Recall:
    """The newest actions, oldest first, after step `index`.

    `calls` counts all steps with a call so far, and `failed_row` the newest of them that failed one after another.
    `one_tool` is True if all calls so far were of one tool.
    """

    __slots__ = ("actions", "calls", "failed_row", "index", "one_tool", "untried")

    def __init__(self, memories: Memories, index: int) -> None:
        kept = table(memories.get(OWN_MEMORY))
        shown, lines = table(kept.get("shown")), table(kept.get("lines"))
        self.index = index
        self.calls = count(kept, "calls")
        self.failed_row = count(kept, "failed_row")
        self.one_tool = len(numbers(kept, "tools")) < MANY_TOOLS
        self.actions = tuple([_action(row, shown, lines) for row in names(kept, "rows")])
        self.untried: Alternatives = untried.alternatives(memories.get(untried.OWN_MEMORY), index)

    def at(self, steps: Iterable[int]) -> list[Action]:
        """Return the actions of these steps that are remembered."""
        wanted = {*steps}
        return [action for action in self.actions if action.step in wanted]

    def like(self, action: Action) -> list[Action]:
        """Return all remembered actions with exactly this call."""
        return [other for other in self.actions if (other.call, other.exact_call) == (action.call, action.exact_call)]

    def failed_lately(self) -> list[Action]:
        """Return the newest actions in a row that failed, without a success since."""
        return [*takewhile(lambda action: action.failed, reversed(self.actions))][::-1]

    def is_cured(self, action: Action) -> bool:
        """Return True if the same call has succeeded since."""
        since = self.actions[len(self.actions) - self.ago(action) + 1 :]
        return any(other.exact_call == action.exact_call and not other.failed for other in since)

    def ago(self, action: Action) -> int:
        """Return 1 for the newest action, 2 for the one before it, and so on."""
        return len(self.actions) - self.actions.index(action)


def _packed(*fields: int) -> str:
    """Return the numbers of an action as a short text: as a list of numbers they take twice the room."""
    packed = 0
    for field, size in zip(fields, _SIZES):
        packed = packed << 8 * size | field
    return b2a_base64(packed.to_bytes(_SIZE, "big"), newline=False).decode()


def _unpacked(row: str) -> list[int]:
    packed = int.from_bytes(a2b_base64(row), "big")
    return [packed >> shift & mask for shift, mask in _FIELDS]


def _action(row: str, shown: Mapping[str, JSON], lines: Mapping[str, JSON]) -> Action:
    step, call, exact_call, result, exact_result, error, flags = _unpacked(row)
    return Action(
        step,
        call,
        exact_call,
        result,
        exact_result,
        error,
        flags,
        str(shown.get(str(exact_call)) or ""),
        str(lines.get(str(exact_result)) or "") if flags & _QUOTED else "",
    )


def remember(features: Features, step: Step, memory: JSON, tool_roles: Mapping[str, str]) -> JSON:
    """Return the memory after this step; a step without calls leaves it as it is."""
    if not step.tool_calls:
        return memory
    kept = table(memory)
    calls, outputs = step.tool_calls[:MAX_READ], [result.output for result in step.tool_results[:MAX_READ]]
    exact_call = _exact([_as_written(call) for call in calls])
    exact_result = _exact([clip(output) for output in outputs])
    may_quote = bool(outputs) and all(trust_of(call, tool_roles) == "full" for call in calls)
    messages = [result_line(error, failing=True) for error in features.errors[:MAX_READ]]
    flags = _flags(features, calls, outputs, messages) | _QUOTED * may_quote
    row = _packed(
        features.index,
        (features.call or 0) & SHORT_HASH,
        exact_call,
        (features.result or 0) & SHORT_HASH,
        exact_result,
        _error(features, outputs) & SHORT_HASH,
        flags,
    )
    shown, lines = table(kept.get("shown")), table(kept.get("lines"))
    left: dict[str, JSON] = {
        "calls": count(kept, "calls") + 1,
        "failed_row": count(kept, "failed_row") + 1 if flags & _FAILED else 0,
        "tools": _tools(numbers(kept, "tools"), calls),
        "rows": [*names(kept, "rows"), row][-MAX_ACTIONS:],
        "shown": _last(shown, str(exact_call), shown.get(str(exact_call)) or call_line(step.tool_calls), MAX_CALLS),
    }
    left["lines"] = dict(lines)
    if may_quote:
        line = lines.get(str(exact_result)) or (messages[0] if messages else result_line(outputs[0], failing=False))
        left["lines"] = _last(lines, str(exact_result), line, MAX_LINES)
    return left


def _as_written(call: ToolCall) -> str:
    """Return the call with its white space, in which two changes of a file may differ."""
    given = call.arguments
    if isinstance(given, dict) and {*map(type, given.values())} == _TEXTS:
        return "\0".join([call.name, *given, *map(clip, given.values())])
    return f"{call.name} {clip(canonical(given))}"


def _exact(texts: Sequence[str]) -> int:
    """Return a hash of the exact texts, never 0; of none 0."""
    return hash_of("\0".join(texts)) & SHORT_HASH | 1 if texts else 0


def _tools(known: list[int], calls: Sequence[ToolCall]) -> list[int]:
    """Return the hashes of the first tools: two are enough to know that there is more than one."""
    if len(known) >= MANY_TOOLS:
        return known
    return [*dict.fromkeys([*known, *[hash_of(call.name[:NAME_HEAD]) & SHORT_HASH for call in calls]])][:MANY_TOOLS]


def _error(features: Features, outputs: Sequence[str]) -> int:
    """Return the hash of the error's message with numbers and paths masked; also that of a failed test."""
    if not features.failing or features.error:
        return features.error or 0
    return error_digests(clip(outputs[0]))[0] if len(outputs) == 1 else 0


def _flags(features: Features, calls: Sequence[ToolCall], outputs: Sequence[str], messages: Sequence[str]) -> int:
    looks = not features.roles.isdisjoint(("read", "search"))
    return (
        _FAILED * features.failing
        | _SEVERAL * (len(calls) > 1)
        | _EDITS * features.changed
        | _CHECKS * checks(features)
        | _EMPTY * (features.empty and all(map(_is_nothing, outputs)))
        | _BLANK * (bool(outputs) and not any(map(str.strip, outputs)))
        | _BARE * (not any(call.arguments for call in calls))
        | _LOOKS * looks
        | (_complaint(calls, features.errors[:MAX_READ], messages) if features.failing else 0)
        | _REFUSED * any(len(output) <= SHORT and says_blocked(output) for output in outputs)
    )


def _complaint(calls: Sequence[ToolCall], said: Sequence[str], messages: Sequence[str]) -> int:
    """Return the flags of an error: what its message is about."""
    missing, offers = any(map(says_missing, said)), any(map(says_offer, said))
    return _MISSING * missing | _OFFERS * offers | _NAMES * _names(calls, messages)


def _names(calls: Sequence[ToolCall], messages: Sequence[str]) -> bool:
    given = " ".join([flattened(call.arguments) for call in calls])
    tools = {call.name for call in calls}
    return any(names_part(message, given, tools) for message in messages)


def _is_nothing(output: str) -> bool:
    """Return True if a result means that there was nothing; monitors also count any short result of a search."""
    return not output.strip() or says_nothing(output)


def _last(kept: Mapping[str, JSON], key: str, text: JSON, most: int) -> dict[str, JSON]:
    """Return the texts with this one at the end, and no more than `most`."""
    left = {name: value for name, value in kept.items() if name != key}
    if len(left) >= most:
        del left[next(iter(left))]
    left[key] = text
    return left
