"""Detects steps that leave the task's subject without announcing it, or that do so and bring nothing new."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from ..types import JSON
from ..util.text import words
from .features import Features
from .finding import Finding, settle
from .memory import numbers, table, texts
from .recall import Recall
from .wording import nothing_gained, told

NAME = "silent_topic_drift"
FAILURE_TYPE = "drift"

TASK_HEAD = 2_000
"""Characters of the task that are read."""
SHORTEST_WORD = 4
"""Letters of the shortest word of a subject."""
LONGEST_WORD = 24
"""Letters of the longest word of a subject."""
STEM = 5
"""Letters of a word's stem, in a task that is not plain ASCII."""
MAX_PAIRS = 64
"""Pairs of letters of a subject in a script without blanks: the first ones."""
THOUGHT_WORDS = 12
"""Words of the shortest thought that has a subject; twice as many characters in a script without blanks."""
ON_SUBJECT = 2
"""Words of the task in one thought that prove that task and thoughts are in the same language."""
MANY = 8
"""Steps in a row off the subject that are drift; from half as many on the score is `NOTE`."""
NOTE = 0.3
"""Score of a drift that has only begun."""
MOST = 0.8
"""Score of a drift that is plain."""
ASIDE = 0.65
"""Score of such calls: less than that of most other findings, since a step can serve the task without naming it."""
LIKELY = 0.5
"""Chance that the trouble lasts from which on such calls are drift."""
AWAY = 2
"""Calls in a row that name nothing of the task, and bring nothing new, that are drift."""
_COMMON = frozenset(
    "that this with from have will your what when where which there their then than them they been into also each "
    "some only over such very just like make need needs want would could should about after before other these those "
    "using used does done more most many much must please first next last find give tell show know here were "
    "because".split()
)
_ANNOUNCED = re.compile(
    r"\b(?:before that|first,? i|back to|detour|aside|unrelated|in the meantime|side (?:note|effect)|prerequisite)\b"
)


_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""A letter of a script without blanks between words, or before their endings: Thai, Lao, Burmese, Khmer, Japanese,
Chinese, Korean."""


def observe(features: Features, memory: JSON) -> Finding:
    """Return the finding. Its facts: `kind` drift or away; `tool` of the newest such step; `count` of them in a row."""
    kept = table(memory)
    off, touched, away = numbers(kept, "off"), bool(kept.get("touched")), _away(features, kept)
    subject, pairs = _subject(features.task)
    speaks = bool(subject or pairs) and _speaks(features, bool(pairs))
    named = _named(features, subject, pairs) if speaks else 0
    if named or (off and (_ANNOUNCED.search(features.thought) or not features.given.isdisjoint(subject))):
        off = []
    elif speaks and touched and features.given.isdisjoint(subject):
        off = [*off, features.index][-MANY:]
    touched = touched or 0 < named >= min(ON_SUBJECT, len(subject) + len(pairs))
    left: dict[str, JSON] = {"off": off, "touched": touched, **away}
    steps = numbers(away, "away")
    score = _score(off, features.index)
    drifts = len(steps) >= AWAY and steps[-1] == features.index and features.lasting >= LIKELY
    if drifts and score < ASIDE:
        facts: dict[str, JSON] = {"kind": "away", "tool": features.tool, "count": len(steps)}
        return settle(left, memory, ASIDE, steps, facts)
    return settle(left, memory, score, off, {"kind": "drift", "tool": features.tool, "count": len(off)})


def _away(features: Features, kept: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the newest calls in a row that name nothing of the task and bring nothing new.

    They count once a step has named a word of the task, so that both are in one language. A step without words to
    compare is passed over.
    """
    known, steps = bool(kept.get("known")), numbers(kept, "away")
    if known and not features.barren:
        return {"known": True}
    if _subject(features.task)[1]:
        return {}
    named = {word[:STEM] for word in (*features.vocabulary, *features.given, *words(features.tool.replace("_", " ")))}
    if not known or not named.isdisjoint(_stems(features.task)):
        return {"known": known or not named.isdisjoint(_stems(features.task))}
    speaks = features.call is not None and bool(features.given)
    return {"known": True, "away": [*steps, features.index][-MANY:] if speaks else steps}


@lru_cache(maxsize=64)
def _stems(task: str) -> frozenset[str]:
    return frozenset([word[:STEM] for word in _subject(task)[0]])


def _score(off: list[int], now: int) -> float:
    if len(off) < MANY // 2 or off[-1] != now:
        return 0.0
    return MOST if len(off) == MANY else NOTE


def _speaks(features: Features, unspaced: bool) -> bool:
    """Return True if the thought is long enough, and in a script like the task's, to be compared with it."""
    if unspaced:
        return len(features.thought) >= 2 * THOUGHT_WORDS and _UNSPACED.search(features.thought) is not None
    return len(features.words) >= THOUGHT_WORDS and (
        features.thought.isascii() or _UNSPACED.search(features.thought) is None
    )


def _named(features: Features, subject: frozenset[str], pairs: frozenset[str]) -> int:
    """Return how many of the subject's words and pairs of letters are in the thought."""
    spoken = features.vocabulary
    if not features.task.isascii():
        spoken = frozenset([word[:STEM] for word in spoken])
    head = features.thought[:TASK_HEAD] if pairs else ""
    return len(spoken & subject) + sum([pair in head for pair in pairs])


@lru_cache(maxsize=64)
def _subject(task: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of the task's subject and, for scripts without blanks, its first pairs of letters.

    In a task that is not plain ASCII the words are stems, since its language may inflect them more than English does.
    """
    head = task[:TASK_HEAD]
    subject = [word for word in words(head) if SHORTEST_WORD <= len(word) <= LONGEST_WORD and word not in _COMMON]
    if task.isascii():
        return frozenset(subject), frozenset()
    pairs = [first + second for first, second in pairwise(head) if _UNSPACED.match(first) and _UNSPACED.match(second)]
    return frozenset([word[:STEM] for word in subject]), frozenset([*dict.fromkeys(pairs)][:MAX_PAIRS])


def say(finding: Finding, rung: int, recall: Recall) -> str:
    """Return the text: the evidence (rung 1), a firmer and shorter one (2), or a call for another kind of step (3)."""
    (kind,) = texts(finding.facts, "kind")
    if kind == "away":
        return told(recall, finding.steps, rung, _gone, _NEXT)
    off, among = len(finding.steps), recall.index - min(finding.steps, default=recall.index) + 1
    which = f"{off} of your last {among}" if off < among else f"Your last {off}"
    return f"{which} messages do not name the subject of the task. {_NEXT[rung]}"


def _gone(recall: Recall, steps: Sequence[int], rung: int) -> str:
    evidence = nothing_gained(recall, steps, rung)
    return f"{evidence[:-1]}, and they name nothing of the task." if evidence else ""


_NEXT = {
    1: "Read the task again, and say in one line how the next step serves it.",
    2: "Go back to the task now.",
    3: "Take a step of another kind: one that the task itself asks for.",
}
