"""Sees steps that leave the subject of the task without saying so."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from .._text import words
from ..types import JSON
from .features import Features
from .finding import Finding, at_steps, numbers, settle, table, texts

NAME = "silent_topic_drift"
FAILURE_TYPE = "drift"

TASK_HEAD = 2_000
"""Characters of the task that are looked at."""
SHORTEST_WORD = 4
LONGEST_WORD = 24
STEM = 5
"""Letters that carry a word of a language that is not written in ASCII."""
MAX_PAIRS = 64
THOUGHT_WORDS = 12
"""Words that a thought has at least to have a subject; twice as many characters where no blanks part words."""
ON_SUBJECT = 2
"""Words of the task, at least, in a thought that shows that the two speak the same language."""
MANY = 8
"""Steps in a row off the subject that count as drift; half as many are noted."""
NOTE = 0.3
_COMMON = frozenset(
    "that this with from have will your what when where which there their then than them they been into also each "
    "some only over such very just like make need needs want would could should about after before other these those "
    "using used does done more most many much must please first next last find give tell show know here were "
    "because".split()
)
_SAID = re.compile(
    r"\b(?:before that|first,? i|back to|detour|aside|unrelated|in the meantime|side (?:note|effect)|prerequisite)\b"
)


_UNPARTED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of scripts in which blanks part no words, or not from their endings: Thai, Lao, Burmese, Khmer, Japanese,
Chinese, Korean."""


def observe(features: Features, memory: JSON) -> Finding:
    """`facts`: `tool` of the newest step off the subject; `count` of them in a row."""
    kept = table(memory)
    off, touched = numbers(kept, "off"), bool(kept.get("touched"))
    subject, pairs = _subject(features.task)
    speaks = bool(subject or pairs) and _speaks(features, bool(pairs))
    named = _named(features, subject, pairs) if speaks else 0
    if named or (off and (_SAID.search(features.thought) or not features.given.isdisjoint(subject))):
        off = []
    elif speaks and touched and features.given.isdisjoint(subject):
        off = [*off, features.index][-MANY:]
    touched = touched or 0 < named >= min(ON_SUBJECT, len(subject) + len(pairs))
    left: dict[str, JSON] = {"off": off, "touched": touched}
    return settle(left, memory, _score(off, features.index), off, {"tool": features.tool, "count": len(off)})


def _score(off: list[int], now: int) -> float:
    if len(off) < MANY // 2 or off[-1] != now:
        return 0.0
    return 0.8 if len(off) == MANY else NOTE


def _speaks(features: Features, unparted: bool) -> bool:
    """Does the thought say enough, in a script like the task's, to be compared with it?"""
    if unparted:
        return len(features.thought) >= 2 * THOUGHT_WORDS and _UNPARTED.search(features.thought) is not None
    return len(features.words) >= THOUGHT_WORDS and (
        features.thought.isascii() or _UNPARTED.search(features.thought) is None
    )


def _named(features: Features, subject: frozenset[str], pairs: frozenset[str]) -> int:
    """How much of the subject the thought names."""
    spoken = features.vocabulary
    if not features.task.isascii():
        spoken = frozenset([word[:STEM] for word in spoken])
    head = features.thought[:TASK_HEAD] if pairs else ""
    return len(spoken & subject) + sum([pair in head for pair in pairs])


@lru_cache(maxsize=64)
def _subject(task: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words that carry the task, and, where blanks part no words, the first pairs of letters in it.

    Of words with letters beyond ASCII, whose languages bend them more, it is the stems.
    """
    head = task[:TASK_HEAD]
    carrying = [word for word in words(head) if SHORTEST_WORD <= len(word) <= LONGEST_WORD and word not in _COMMON]
    if task.isascii():
        return frozenset(carrying), frozenset()
    pairs = [one + other for one, other in pairwise(head) if _UNPARTED.match(one) and _UNPARTED.match(other)]
    return frozenset([word[:STEM] for word in carrying]), frozenset([*dict.fromkeys(pairs)][:MAX_PAIRS])


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
