"""Describes the tools with which an agent uses codebase memory, once for all frameworks, and answers their calls.

No exception reaches the agent: each becomes a text for the model, which reports the cause and the way on.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..concurrency.workers import in_daemon
from ..exceptions import BadAnswer, ConfigError, ReasonBlocksError, Refused, StoreError, Unavailable
from ..findings import CONTENT_CHARS, MOST_RECALLED, PATH_CHARS, QUERY_CHARS, TYPE_CHARS, recalled_text
from ..render.sanitise import sanitise
from ..types import Finding
from ..util.json import JSON
from ..util.text import collapse, preview, whole

if TYPE_CHECKING:
    from .memory import CodebaseMemory

logger = logging.getLogger("reasonblocks")

ID_CHARS = 200
"""Characters of a note's id: ours have 32; those of another server may be longer."""
NAME_CHARS = 60
"""Characters of an unknown argument's name that an error repeats."""
MOST_ERRORS = 5
"""Wrong arguments that an error lists."""
FORGETTING = "memory_forget"
ERROR_CHARS = 1_000
"""Characters of an error text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """The text that the model reads as a tool's result, and whether the call failed."""

    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTool:
    """A tool for a model: its name, its description, and the JSON schema of its arguments.

    `reads_only` is True if a call changes nothing. The methods may be called from any thread, and never raise.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    reads_only: bool
    _answered: Callable[[object], ToolAnswer] = field(repr=False)

    @property
    def hints(self) -> Mapping[str, bool]:
        """The hints about the tool for an MCP client, by the names of the protocol."""
        return {
            "readOnlyHint": self.reads_only,
            "destructiveHint": self.name == FORGETTING,
            "idempotentHint": True,
            "openWorldHint": False,
        }

    def call(self, arguments: Mapping[str, Any] | str) -> ToolAnswer:
        """Return the answer to a call with these arguments, or with this JSON object of arguments."""
        return self._answered(arguments)

    async def acall(self, arguments: Mapping[str, Any] | str) -> ToolAnswer:
        """Return the same as `call`, which runs in another thread meanwhile."""
        try:
            return await in_daemon(partial(self._answered, arguments))
        except BadAnswer as exc:  # code of the user's tried to end the thread
            return _failed(self.name, _told(exc))


def memory_tools(memory: CodebaseMemory) -> tuple[MemoryTool, ...]:
    """Return the tools of one codebase: `memory_recall`, `memory_store` and `memory_forget`.

    Raises `ExtraMissing` without the extra `memory`.
    """
    memory._need_detectors()
    answers = _Answers(memory)
    return (
        _tool("memory_recall", RECALL, _Recall, answers.recall, reads_only=True),
        _tool("memory_store", STORE, _Store, answers.store, reads_only=False),
        _tool(FORGETTING, FORGET, _Forget, answers.forget, reads_only=False),
    )


RECALL = (
    "Search the notes that earlier runs stored about this codebase. Call it before you explore the codebase: a note "
    "may already answer where something is, which command works, or why something failed. Notes may be outdated or "
    "wrong, so check one before you rely on it."
)
STORE = (
    "Store a note about this codebase for later runs. Call it when you have found out something that took effort and "
    "that a later run will need too: where something is, which command works, why something failed. Store one fact per "
    "note, and nothing secret. If the note is about one file, pass its path, so that a change of the file is noticed."
)
FORGET = "Remove a note that proved to be wrong or outdated, by the id that memory_recall or memory_store returned."


# ------------------------------------------------------------ the arguments


class _Arguments(BaseModel):
    """Arguments as a model sends them. An unknown one is an error, because it may be a misspelt one that matters."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Recall(_Arguments):
    query: Annotated[
        str,
        Field(
            min_length=1, description=f"What to look for, in a few words; {QUERY_CHARS:,} characters of it are used."
        ),
    ]
    top_k: Annotated[int, Field(ge=1, le=MOST_RECALLED, description="The most notes to return.")] = 5


class _Store(_Arguments):
    content: Annotated[str, Field(min_length=1, max_length=CONTENT_CHARS, description="The fact, in plain sentences.")]
    file_path: Annotated[
        str,
        Field(
            max_length=PATH_CHARS,
            description="The file that the note is about, relative to the root of the codebase; empty for none.",
        ),
    ] = ""
    finding_type: Annotated[
        str,
        Field(
            min_length=1,
            max_length=TYPE_CHARS,
            description='The kind of the note, one short name such as "note", "command", "location" or "gotcha".',
        ),
    ] = "note"


class _Forget(_Arguments):
    finding_id: Annotated[str, Field(min_length=1, max_length=ID_CHARS, description="The id of the note.")]


A = TypeVar("A", bound=_Arguments)


class _Wrong(Exception):
    """The arguments are wrong. `reason`."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@cache
def _schema(model: type[_Arguments]) -> Mapping[str, Any]:
    """Return the JSON schema without the titles, which only repeat the names."""
    made = model.model_json_schema()
    properties = {
        name: {key: value for key, value in one.items() if key != "title"} for name, one in made["properties"].items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": made["required"],
        "additionalProperties": False,
    }


def _read(model: type[A], given: object) -> A:
    """Return the arguments. A null is an argument that is not given, as some models send it."""
    values = _parsed(given) if isinstance(given, str) else given
    if not isinstance(values, Mapping):
        raise _Wrong(f"the arguments must be a JSON object, not {type(values).__name__}")
    plain = {str(name): _plain(one) for name, one in values.items() if one is not None}
    try:
        return model.model_validate(plain)
    except ValidationError as exc:
        raise _Wrong(_reasons(exc, tuple(model.model_fields))) from exc


def _plain(value: object) -> object:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    return whole(text) if isinstance(text, str) else text


def _parsed(text: str) -> JSON:
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as exc:
        raise _Wrong(f"the arguments are not valid JSON ({exc})") from exc


def _reasons(exc: ValidationError, known: tuple[str, ...]) -> str:
    errors = exc.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(_reason(one["type"], str(one["loc"][0]), one["msg"], known) for one in errors[:MOST_ERRORS])


def _reason(kind: str, name: str, message: str, known: tuple[str, ...]) -> str:
    if kind == "missing":
        return f"{name} is missing"
    if kind == "extra_forbidden":
        return f"{preview(name, NAME_CHARS)!r} is unknown (known: {', '.join(known)})"
    return f"{name}: {message}"


# ------------------------------------------------------------ the answers


class _Answers:
    """Runs the calls on one codebase's memory."""

    def __init__(self, memory: CodebaseMemory) -> None:
        self._memory = memory

    def recall(self, given: _Recall) -> str:
        return recalled_text(self._memory.recall(given.query, top_k=given.top_k))

    def store(self, given: _Store) -> str:
        (kept,) = self._memory._kept(
            [Finding(content=given.content, file_path=given.file_path, finding_type=given.finding_type)]
        )
        masked = "" if kept.content == given.content else " Part of its text was masked, as secrets are."
        return f"Stored as note {kept.finding_id}{_lasting(kept)}.{masked}"

    def forget(self, given: _Forget) -> str:
        name = given.finding_id.strip()
        if self._memory.forget([name]):
            return f"Note {name} is removed."
        return f"There is no note {name}, so none was removed. memory_recall returns the ids of notes."


def _lasting(kept: Finding) -> str:
    """Return what the note is about, and what will make it outdated."""
    if not kept.file_path:
        return " about no single file: it is recalled until it is removed"
    if not kept.file_hash:
        return f" about {kept.file_path}, which could not be read here: later changes of it cannot be noticed"
    return f" about {kept.file_path}: it is outdated once that file changes"


def _tool(name: str, description: str, model: type[A], answer: Callable[[A], str], *, reads_only: bool) -> MemoryTool:
    logged: set[str] = set()

    def answered(given: object) -> ToolAnswer:
        try:
            text = answer(_read(model, given))
        except Exception as exc:  # noqa: BLE001 - the edge to an agent, which must go on without its memory
            return _failed(name, _told(exc) or _unforeseen(name, exc, logged))
        return ToolAnswer(text=text if reads_only else _one_line(text))

    return MemoryTool(
        name=name, description=description, parameters=_schema(model), reads_only=reads_only, _answered=answered
    )


def _failed(name: str, text: str) -> ToolAnswer:
    return ToolAnswer(text=_one_line(f"{name} failed: {text}"), is_error=True)


def _one_line(text: str) -> str:
    """Return a text of ours that repeats something of others', which must not open a frame or a role."""
    return preview(sanitise(collapse(text)), ERROR_CHARS)


def _told(exc: Exception) -> str:
    """Return what a model is told about an expected error; nothing for another one."""
    without = "Continue without it."
    match exc:
        case _Wrong():
            return f"{exc.reason}. Nothing was done. Correct the arguments and call it again."
        case ConfigError():
            return f"{exc.name}: {exc.rule}. Nothing was done. Correct the arguments and call it again."
        case StoreError():
            return f"{exc.reason}. Nothing was changed. {without}"
        case Unavailable(retry_after=float() | int() as seconds):
            return f"the memory is unavailable: {exc.reason}. It may answer again in {seconds:.0f} s. {without}"
        case Unavailable() | Refused():
            return f"the memory is unavailable: {exc.reason}. {without}"
        case BadAnswer():
            return f"the memory gave a wrong answer: {exc.source}: {exc.rule}. {without}"
        case ReasonBlocksError():
            return f"{exc}. {without}"
    return ""


def _unforeseen(name: str, exc: Exception, logged: set[str]) -> str:
    if not logged:
        logged.add(name)
        logger.warning("%s failed; the agent continues (logged once)", name, exc_info=exc)
    return f"an unexpected error in the memory ({type(exc).__name__}). Continue without it."
