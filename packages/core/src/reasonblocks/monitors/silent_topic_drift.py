"""Sees steps that leave the subject of the task without saying so."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import cast

from ..text import words
from ..types import JSON
from .features import Features
from .finding import Finding, at_steps, numbers, settle, table, texts

__all__ = ["FAILURE_TYPE", "NAME", "observe", "say"]

NAME = "silent_topic_drift"
FAILURE_TYPE = "drift"

TASK_HEAD = 2_000
"""Characters of the task that are looked at."""
SUBJECT_BYTES = 1_200
"""Bytes of UTF-8 of the task's words that are kept, the first ones: a task names its subject early."""
SHORTEST_WORD = 4
LONGEST_WORD = 24
THOUGHT_WORDS = 12
"""Words that a thought has at least to have a subject."""
MANY = 8
"""Steps in a row off the subject that count as drift; half as many are noted."""
_COMMON = frozenset(
    "that this with from have will your what when where which there their then than them they been into also each "
    "some only over such very just like make need needs want would could should about after before other these those "
    "using used does done more most many much must please first next last find give tell show know here were "
    "because".split()
)
_SAID = re.compile(
    r"\b(?:before that|first,? i|back to|detour|aside|unrelated|in the meantime|side (?:note|effect)|prerequisite)\b"
)


def observe(features: Features, memory: JSON) -> Finding:
    """`facts`: `tool` of the newest step off the subject; `count` of them in a row."""
    kept = table(memory)
    subject = cast("list[str]", kept["subject"]) if kept else _subject(features.task)
    off, touched = numbers(kept, "off"), bool(kept.get("touched"))
    speaks = len(features.words) >= THOUGHT_WORDS
    near = speaks and not features.vocabulary.isdisjoint(subject)
    if near or (off and _SAID.search(features.thought)):
        off = []
    away = speaks and bool(subject) and (touched and not near)
    off = [*off, features.index][-MANY:] if away else off
    left: dict[str, JSON] = {"subject": subject, "off": off, "touched": touched or near}
    score = 0.8 * len(off) / MANY if away and len(off) >= MANY // 2 else 0.0
    return settle(left, memory, score, off, {"tool": features.tool, "count": len(off)})


def _subject(task: str) -> list[str]:
    """The words that carry the task."""
    found = (word for word in words(task[:TASK_HEAD]) if SHORTEST_WORD <= len(word) <= LONGEST_WORD)
    carrying = [word for word in dict.fromkeys(found) if word not in _COMMON]
    sizes = accumulate(len(word.encode()) + 3 for word in carrying)
    return [word for word, size in zip(carrying, sizes, strict=True) if size <= SUBJECT_BYTES]


def say(finding: Finding, rung: int) -> str:
    """Rung 1 the evidence, 2 firmer and shorter, 3 wrap up."""
    (tool,) = texts(finding.facts, "tool")
    how = f", the last of them calling {tool}" if tool else ""
    return f"{at_steps(finding.evidence)} do not touch the subject of the task{how}. {_NEXT[rung]}"


_NEXT = {
    1: "Read the task again, and say in one line how the next step serves it.",
    2: "Go back to the task now.",
    3: "Wrap up: answer what the task asks with what you have.",
}
