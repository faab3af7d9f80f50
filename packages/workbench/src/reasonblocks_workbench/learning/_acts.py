"""Reduces a completed step to what learning needs: tool, result, error, and the form of each argument."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from reasonblocks.account.calls import Kind, command_of, kind_of
from reasonblocks.account.results import read_result, says_nothing
from reasonblocks.account.sameness import call_text, hash_of, own_values, result_digest, values_in
from reasonblocks.masking import MASK, announces
from reasonblocks.masking.mask import LONGEST, label, run_label, short, whole_words, without_secrets
from reasonblocks.monitors.excerpts import NAME_LENGTH, plain
from reasonblocks.types import JSON, Step, ToolCall
from reasonblocks.util.json import canonical
from reasonblocks.util.text import collapse, digest, words

MAX_ARGUMENTS = 12
MAX_CALLS = 32
"""Calls and results of a step that are read."""
STEM, MAX_STEMS, GIST_WORDS = 4, 8, 60
"""Letters of a word's stem, the stems of a gist, and the words that they are taken from."""
ERROR_CHARS = 140
"""Characters of an error that a lesson quotes."""
BEFORE = 1_000
"""Characters before a traceback's last error in which a secret may begin."""
FEW_WORDS = 8
"""The most words of a text that a lesson counts: a query is shorter, a letter is longer."""
WORDS_HEAD = 1_000
MARKS = frozenset("#@/.~$-")
"""Signs that a tool may or may not expect before a word, as in "#general"."""
MAX_WORDS = 3
"""The most words of a tool's name; a longer one is a sentence, which may name someone."""
_DIGIT = re.compile(r"\d")
_DATE = re.compile(r"(?=.*\d)[\d:/T .Z+-]{4,40}")
_CLASS = re.compile(r"([A-Za-z]{2,20}(?:_[A-Za-z]{2,20}){0,3})[_-]\d+")
_PROGRAM = re.compile(r"\s*(?:cd\s+\S+\s*(?:&&|;)\s*)?(?:\w+=\S*\s+){0,4}([a-z][a-z_-]{1,20}\d?)(?=\s|$)")
COMMAND_HEAD = 400
"""Characters of a command within which its program is looked for."""
_WORD = re.compile(r"[a-z][a-z_-]{1,23}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument: its name, the form of its value, and the value's word.

    `word` may be shown in a lesson only if it occurs in several tasks; it is empty for personal and secret values and
    for longer texts. `value` is a hash.
    """

    name: str
    form: str
    word: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One step. `call` and `result` are hashes; `error` is the masked error, "" if nothing failed.

    `gist` has hashes of the arguments' stems if nothing was found: it is equal for a search in other words.
    """

    tool: str
    call: int | None
    result: int | None
    error: str
    empty: bool
    gist: tuple[int, ...]
    arguments: tuple[Argument, ...]
    says: bool = False
    """True if the step only speaks: it calls no tool, or one that takes a single text."""

    @property
    def failing(self) -> bool:
        return bool(self.error)

    @property
    def fruitless(self) -> bool:
        """True if the step failed or found nothing."""
        return bool(self.error) or self.empty


def act_of(step: Step, tool_roles: Mapping[str, str], private: frozenset[str]) -> Act:
    """Return the step as learning keeps it."""
    calls, results = step.tool_calls[:MAX_CALLS], step.tool_results[:MAX_CALLS]
    kinds = [kind_of(call, tool_roles) for call in calls]
    by_call = {call.id: (call, kind) for call, kind in zip(calls, kinds, strict=True)}
    first = (calls[0], kinds[0]) if calls else (ToolCall(id="", name=""), NONE)
    made = [by_call.get(result.call_id, first) for result in results]
    readings = [
        read_result(result, kind=kind, given=call.arguments) for (call, kind), result in zip(made, results, strict=True)
    ]
    failed = [reading.text for reading in readings if reading.failed]
    parsed = calls[0].arguments if calls else {}
    arguments = parsed if isinstance(parsed, Mapping) else {"input": parsed}
    values = [value for call in calls for value in own_values(call.arguments)]
    looks = bool(kinds) and any(kind.looks for kind in kinds)
    empty = not failed and looks and bool(results) and all(map(_is_nothing, [reading.text for reading in readings]))
    acts = any(call.arguments for call in calls) or any(result.output or result.is_error for result in results)
    shell = any(kind.shell for kind in kinds)
    return Act(
        tool=_tool(step, shell=shell),
        call=hash_of("\n".join(sorted(map(call_text, calls)))) if acts else None,
        result=hash_of(" ".join(sorted([str(result_digest(one.text, values)) for one in readings])))
        if results
        else None,
        error=_error(failed[0], arguments, private) if failed else "",
        empty=empty,
        gist=_gist(calls[0].arguments) if empty else (),
        arguments=tuple(
            _argument(str(name), arguments[name], private) for name in sorted(arguments, key=str)[:MAX_ARGUMENTS]
        ),
        says=not calls or (set(arguments) <= {"input"} and not shell and not any(kind.roles for kind in kinds)),
    )


NONE = Kind(frozenset())
"""The kind of a result without a call."""


def _is_nothing(text: str) -> bool:
    """Return True if a result is blank or reports in words that nothing was found."""
    return not text.strip() or says_nothing(text)


def _gist(given: JSON) -> tuple[int, ...]:
    said = words(" ".join(values_in(given)))[:GIST_WORDS]
    stems = {word[:STEM] for word in said if len(word) > 2 or not word.isascii()}
    return tuple(sorted(map(hash_of, stems))[:MAX_STEMS])


def _tool(step: Step, *, shell: bool) -> str:
    """Return the tool's name; for a shell also the program that it runs. A name with a secret is masked."""
    names = [plain(call.name) for call in step.tool_calls[:MAX_CALLS]]
    shown = names[0] if len(names) == 1 else " + ".join(dict.fromkeys(names))[:NAME_LENGTH].rstrip(" +")
    if not shell or len(step.tool_calls) != 1:
        called = step.tool_calls[0].name if step.tool_calls else ""
        masked = label(called) if len(called.split()) <= MAX_WORDS else run_label(called)
        return shown if masked == called else MASK
    command = command_of(step.tool_calls[0])[:COMMAND_HEAD]
    program = _PROGRAM.match(command)
    if program and "=" in program[0]:  # a secret of several words, passed to the program
        program = _PROGRAM.match(without_secrets(command))
    return label(f"{shown} {program[1]}" if program else shown)


def _error(text: str, arguments: Mapping[str, JSON], private: Collection[str]) -> str:
    error = short(re.sub(r"(?i)^(?:error\s*:\s*)+", "", _raised(text.strip())), arguments, private, ERROR_CHARS)
    return error or "error"


def _raised(text: str) -> str:
    """Return a traceback's final error, masked together with the text before it: a secret may span several lines."""
    if "Traceback" not in text[:400]:
        return text
    found = [*re.finditer(r"^[\w.]*(?:Error|Exception)\b.*", text, re.MULTILINE)]
    if not found:
        return text
    start, end = found[-1].span()
    near = without_secrets(text[max(0, start - BEFORE) : start] + whole_words(text[start:end], LONGEST))
    raised = re.findall(r"^[\w.]*(?:Error|Exception)\b.*", near, re.MULTILINE)
    return raised[-1] if raised else near


_PERSONAL = re.compile(r"(?i)name|user|customer|passenger|person|mail|phone|address|contact|recipient|sender|guest")
"""Arguments whose values no lesson shows."""


def _argument(name: str, value: JSON, private: frozenset[str]) -> Argument:
    return Argument(
        name=plain(name) if run_label(name, private) == name else MASK,
        form=_form(value),
        word="" if _PERSONAL.search(name) or announces(name) else _word(value),
        value=digest(collapse(canonical(value))[:4_000]),
    )


def _form(value: JSON) -> str:
    """Describe the kind of value in words that do not reveal it."""
    if value is None:
        return "no value"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return "a whole number"
    if isinstance(value, float):
        return "a number with a decimal point"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}" if value else "an empty list"
    text = str(value).strip()
    if not text:
        return "an empty text"
    if _DATE.fullmatch(text):
        return f"`{_DIGIT.sub('#', text)}`"
    if text.isdecimal():
        return "digits"
    count = len(text[:WORDS_HEAD].split())
    if count == 1 and text[0] in MARKS:
        return f"a word after `{text[0]}`"
    return "one word" if count == 1 else f"{count} words" if count <= FEW_WORDS else "a longer text"


def _word(value: JSON) -> str:
    """Return the value of a choice ("economy"), an id without its number ("credit_card_#"), or ""."""
    if not isinstance(value, str):
        return ""
    if (found := _CLASS.fullmatch(value)) is not None:
        return f"{found[1]}_#"
    return value if _WORD.fullmatch(value) else ""
