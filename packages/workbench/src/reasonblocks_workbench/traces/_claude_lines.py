"""Reads the lines of a Claude Code transcript, and finds those of a conversation's newest branch.

Each line names the line before it (`parentUuid`). A prompt that was edited, or a request that was repeated, begins a
branch; only the branch of the newest line is followed. The source is Claude Code 2.1.330, unless noted otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reasonblocks.exceptions import RecordError
from reasonblocks.messages import anthropic, first_text, get

from ._files import Record

SAID = ("user", "assistant")
"""The types of the lines that hold a message."""
NOT_PROMPTS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
"""Marks of user messages that the CLI itself writes."""
BOUNDARY = "compact_boundary"
OF_ALL = ("isSidechain", "agentId", "subtype")
KEPT = (*OF_ALL, *NOT_PROMPTS, "type", "message", "promptId", "error", "isApiErrorMessage")
"""The fields of a line that are kept: a whole transcript is held in memory, since its end decides its branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a conversation. `parent` is None on its first line, and "" where the line does not name it."""

    number: int
    value: Mapping[str, Any]
    """The fields that are kept."""
    uuid: str
    parent: str | None

    @property
    def message(self) -> Mapping[str, Any]:
        """The line's message; {} without one."""
        message: Mapping[str, Any] = self.value.get("message") or {}
        return message

    @property
    def by_model(self) -> bool:
        return self.value.get("type") == "assistant"

    @property
    def blocks(self) -> Sequence[Mapping[str, Any]]:
        return anthropic.blocks_of(self.message)

    @property
    def results(self) -> list[Mapping[str, Any]]:
        """The results of tools that a line of the user holds."""
        return [] if self.by_model else [block for block in self.blocks if anthropic.kind(block) == "tool_result"]

    @property
    def answer_id(self) -> str:
        """The id that the lines of one answer share: each has one block of it."""
        return first_text(self.message, "id") or self.uuid

    @property
    def agent(self) -> str:
        """The id of the subagent whose line it is; "" for the main agent, and in older transcripts."""
        return first_text(self.value, "agentId") or ""


def line_of(file: str, record: Record) -> Line | RecordError | None:
    """Return a record as a line; None if it is not part of a conversation."""
    value = record.value
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return RecordError(file, record.line, "is not a line of a transcript: it has no 'type'")
    said = value["type"] in SAID
    if said and not isinstance(value.get("message"), dict):
        return RecordError(file, record.line, "message: not an object")
    uuid = first_text(value, "uuid") or (f"line {record.line}" if said else "")
    if not uuid:
        return None
    kept = {name: value[name] for name in (KEPT if said else OF_ALL) if name in value}
    told = value.get("toolUseResult")  # the whole output again: only a subagent's id is needed
    started = {"toolUseResult": {"agentId": told.get("agentId")}} if said and isinstance(told, dict) else {}
    return Line(number=record.line, value={**kept, **started}, uuid=uuid, parent=_parent(value))


def _parent(value: Mapping[str, Any]) -> str | None:
    """Return the uuid of the line before.

    That of a compacted conversation's first line is its `logicalParentUuid`, or else the last of the messages that the
    compaction preserved.
    """
    named = first_text(value, "parentUuid", "logicalParentUuid")
    if value.get("subtype") == BOUNDARY:
        kept = get(get(value, "compactMetadata"), "preservedSegment")
        return named or (first_text(kept, "tailUuid") if isinstance(kept, Mapping) else None) or ""
    return None if named is None and "parentUuid" in value and value["parentUuid"] is None else named or ""


def newest_branch(lines: Sequence[Line]) -> list[Line]:
    """Return the messages of the branch that ends with the newest message, in the order of the file.

    A boundary may name a line that follows it, where the messages that its compaction preserved are repeated, or one
    before an earlier boundary, where they were preserved a second time: the branch goes on with the line before it.

    The tools of one answer run side by side, so that each result has the line of its own call as its parent, and the
    next answer only one of them. So the branch has all lines of an answer, and the results of all its calls. A line
    that the file repeats counts once.
    """
    lines = _unrepeated(lines)
    places = {line.uuid: at for at, line in enumerate(lines)}
    said = [at for at, line in enumerate(lines) if line.value.get("type") in SAID]
    boundaries = [at for at, line in enumerate(lines) if line.value.get("subtype") == BOUNDARY]
    earlier = dict(zip(boundaries, [-1, *boundaries]))
    branch: set[int] = set()
    at = said[-1] if said else -1
    while at >= 0 and at not in branch:
        branch.add(at)
        parent = lines[at].parent
        before = -1 if parent is None else places.get(parent, at - 1)
        skips = before < earlier.get(at, -1)
        at = at - 1 if before in branch or skips else before
    _add_siblings(lines, said, places, branch)
    return [lines[at] for at in said if at in branch]


def _unrepeated(lines: Iterable[Line]) -> list[Line]:
    found: dict[str, Line] = {}
    for line in lines:
        found.setdefault(line.uuid, line)
    return list(found.values())


def _add_siblings(lines: Sequence[Line], said: Sequence[int], places: Mapping[str, int], branch: set[int]) -> None:
    """Add the other lines of the branch's answers, and the results of their calls."""
    answers = {lines[at].answer_id for at in branch if lines[at].by_model}
    branch.update(at for at in said if lines[at].by_model and lines[at].answer_id in answers)
    for at in said:
        if lines[at].results and places.get(lines[at].parent or "") in branch:
            branch.add(at)
