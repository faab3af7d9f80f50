"""What one completed step did, as small as learning needs it: tool, result, and the form of what was given."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from .._json import canonical
from .._monitors.arguments import command_of
from .._monitors.features import Features, features_of, plain
from .._monitors.outcome import says_nothing
from .._text import collapse, digest
from ..types import JSON, Step
from ._mask import LONGEST, label, run_label, short, whole_words, without_secrets
from ._secret_names import MASK, announces

LOOKS = ("read", "search")
"""Roles of a tool whose empty result is a trouble; of another one it may be how it goes well."""
MAX_GIVEN = 12
"""Arguments of a call that are looked at."""
ERROR_CHARS = 140
"""Of the kind of an error, as a lesson quotes it."""
BEFORE = 1_000
"""Characters before a traceback's last error in which a secret may begin."""
FEW_WORDS = 8
"""Words that a lesson counts: of a query, not of a letter."""
WORDS_HEAD = 1_000
MARKS = frozenset("#@/.~$-")
"""What a tool may want before a word, or not: "#general"."""
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
class Given:
    """One argument: its name, what kind of value it is, and a word that stands for it where that is common enough to
    be said; `value` is a hash."""

    name: str
    form: str
    word: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One step. `call` and `result` are hashes; `error` is the kind of error, "" where nothing failed."""

    tool: str
    call: int | None
    result: int | None
    error: str
    empty: bool
    gist: tuple[int, ...]
    given: tuple[Given, ...]
    says: bool = False
    """It only speaks: no tool, or one that is given a text and nothing else."""

    @property
    def failing(self) -> bool:
        return bool(self.error)

    @property
    def fruitless(self) -> bool:
        """It failed or found nothing."""
        return bool(self.error) or self.empty


def act_of(step: Step, index: int, tool_roles: Mapping[str, str], private: frozenset[str]) -> Act:
    """The step as learning keeps it."""
    features = features_of(step, index, "", tool_roles)
    arguments = step.tool_calls[0].arguments if step.tool_calls else {}
    given = arguments if isinstance(arguments, Mapping) else {"input": arguments}
    return Act(
        tool=_tool(step, features),
        call=features.call,
        result=features.result,
        error=_error(step, features, given, private),
        empty=not features.failing and not features.roles.isdisjoint(LOOKS) and _says_nothing(step),
        gist=features.gist,
        given=tuple(_given(str(name), given[name], private) for name in sorted(given, key=str)[:MAX_GIVEN]),
        says=not step.tool_calls or (set(given) <= {"input"} and not features.shell and not features.roles),
    )


def _says_nothing(step: Step) -> bool:
    """In words: a short result, that monitors take for nothing too, may be all that was asked for."""
    outputs = [result.output for result in step.tool_results]
    return bool(outputs) and all(not text.strip() or says_nothing(text) for text in outputs)


def _tool(step: Step, features: Features) -> str:
    """The tool's name; with a shell also the program that it runs."""
    if not features.shell or len(step.tool_calls) != 1:
        called = step.tool_calls[0].name if step.tool_calls else ""
        masked = label(called) if len(called.split()) <= MAX_WORDS else run_label(called)
        return features.tool if masked == called else MASK
    command = command_of(step.tool_calls[0])[:COMMAND_HEAD]
    program = _PROGRAM.match(command)
    if program and "=" in program[0]:  # a secret of several words, passed to the program
        program = _PROGRAM.match(without_secrets(command))
    return label(f"{features.tool} {program[1]}" if program else features.tool)


def _error(step: Step, features: Features, given: Mapping[str, JSON], private: Collection[str]) -> str:
    if not features.failing or features.error is None:
        return ""
    flagged = [result.output for result in step.tool_results if result.is_error]
    text = (flagged or [result.output for result in step.tool_results])[0].strip()
    said = short(re.sub(r"(?i)^(?:error\s*:\s*)+", "", _raised(text)), given, private, ERROR_CHARS)
    return said or "error"


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
"""Arguments whose values no lesson says."""


def _given(name: str, value: JSON, private: frozenset[str]) -> Given:
    return Given(
        name=plain(name) if run_label(name, private) == name else MASK,
        form=_form(value),
        word="" if _PERSONAL.search(name) or announces(name) else _word(value),
        value=digest(collapse(canonical(value))[:4_000]),
    )


def _form(value: JSON) -> str:
    """What kind of value it is, in words that tell nothing of it."""
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
    """ "credit_card_#" of an id, "economy" of a choice: said only where several tasks have it."""
    if not isinstance(value, str):
        return ""
    if (found := _CLASS.fullmatch(value)) is not None:
        return f"{found[1]}_#"
    return value if _WORD.fullmatch(value) else ""
