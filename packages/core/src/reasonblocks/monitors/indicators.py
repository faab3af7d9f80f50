"""Indicators of how a run will end: a few numbers in [0, 1], each of which raises the score of one monitor.

Each is a decayed mean over the run so far, except `off_task` and `depth`, which have their current values. None proves
trouble: in recorded runs of many agents each one correlates with failure at equal run length, and a `Calibration` holds
how strongly. The three lengths are habits, which mean something for one agent only.
"""

from __future__ import annotations

import math
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from zlib import crc32

from ..types import JSON
from .arguments import longer_words
from .features import Features
from .memory import count, fraction, numbers, table

INDICATORS: Mapping[str, str] = MappingProxyType(
    {
        "error": "semantic_loop",
        "errors_in_row": "semantic_loop",
        "repeat_after_error": "semantic_loop",
        "same_outcome": "semantic_loop",
        "same_result": "semantic_loop",
        "old_words": "cyclic_compression",
        "depth": "late_sprawl",
        "off_task": "silent_topic_drift",
        "thought_length": "claim_contradiction",
        "call_length": "verification_skip",
        "result_length": "cyclic_compression",
    }
)
"""Each indicator's monitor."""
OWN_MEMORY = "_evidence"
"""The key of the indicators' own memory among those of the monitors; snapshots have it."""

DECAY = 0.85
"""Weight of a step relative to the one after it: four steps later it is half."""
RECENT = 12
"""Newest actions that are searched for the same one."""
SHORTEST_LOOK, SHORTEST_RESULT = 8, 40
"""Characters of the shortest meaningful result, of a look and of another call: "File updated." is always the same."""
DEEPEST = 20
"""Steps at which the depth is 1."""
FEW_WORDS = 25
"""Words of arguments above which they are a text, which repeats old words anyway."""
MAX_TASK_WORDS = 256
"""Words of the task that are looked for."""
TASK_HEAD = 2_000
"""Characters of the task that are read."""
PLACES = 2_048
"""Bits of a set of words: each word sets the bit of its hash."""
MAX_WORDS = 320
"""Set bits above which the older set of words is dropped."""
MAX_SHOWN = 4
"""Steps that a monitor's indicators name: the newest."""
LONGEST = 16_000
"""Characters at which a length is 1, on a logarithmic scale."""
_LONGEST = math.log1p(LONGEST)


def gather(features: Features, memory: JSON) -> tuple[Mapping[str, float], JSON]:
    """Return the indicators after this step by name, and their memory."""
    kept = table(memory)
    outcomes, results = numbers(kept, "outcomes"), numbers(kept, "results")
    words = _Words(kept.get("given"), features.given)
    trouble = features.error is not None and not features.passing
    troubled = kept.get("troubled") is True
    acts = features.call is not None
    asks = acts and not features.waiting
    outcome = (features.call or 0) ^ ((features.result or 0) << 16)
    now = {
        "error": trouble,
        "errors_in_row": trouble and troubled,
        "repeat_after_error": acts and troubled and features.call == kept.get("call"),
        "same_outcome": asks and outcome in outcomes,
        "same_result": asks and _is_meaningful(features) and features.result in results,
        "old_words": words.share() if len(features.given) <= FEW_WORDS else 0.0,
        "thought_length": _length(features.lengths[0]),
        "call_length": _length(features.lengths[1]),
        "result_length": _length(features.lengths[2]),
    }
    steps = count(kept, "steps") + 1
    means = _means(now, table(kept.get("means")), steps)
    before = _decoded(kept.get("touched"))
    touched = _touched(features, before)
    left: dict[str, JSON] = {
        "steps": steps,
        "means": dict(means),
        "touched": kept["touched"] if touched == before and kept else _encoded(touched),
        "troubled": trouble or (troubled and not acts),
    }
    newest = numbers(kept, "shown")
    shows = trouble or now["same_outcome"] or (now["same_result"] and not features.empty)
    left["shown"] = [*newest, features.index][-MAX_SHOWN:] if shows else newest
    left["given"] = words.memory()
    left["call"] = features.call if acts else kept.get("call")
    left["outcomes"] = [*outcomes, outcome][-RECENT:] if acts else outcomes
    left["results"] = [*results, features.result or 0][-RECENT:] if acts else results
    return {**means, "depth": _depth(steps), "off_task": _off_task(features.task, touched)}, left


def shown(memory: JSON) -> dict[str, tuple[int, ...]]:
    """Return by monitor the newest steps that its indicators come from."""
    return {"semantic_loop": tuple(numbers(table(memory), "shown"))}


def _is_meaningful(features: Features) -> bool:
    """Return True if the result is long enough to mean something when it is repeated."""
    looks = not features.roles.isdisjoint(("read", "search"))
    return features.lengths[2] >= (SHORTEST_LOOK if looks else SHORTEST_RESULT)


def _depth(steps: int) -> float:
    return round(math.log(steps) / math.log(DEEPEST), 4) if steps < DEEPEST else 1.0


def _length(characters: int) -> float:
    return math.log1p(min(characters, LONGEST)) / _LONGEST


def _means(now: Mapping[str, float], before: Mapping[str, JSON], steps: int) -> dict[str, float]:
    """Return the new means; the steps before have a weight of 0.85 + 0.85^2 + ..., the new one of 1."""
    weight = DECAY * ((1 - DECAY ** (steps - 1)) / (1 - DECAY))
    means: dict[str, float] = {}
    for name, value in now.items():
        mean = fraction(before, name)
        means[name] = round((weight * mean + value) / (weight + 1), 4) if mean or value else 0.0
    return means


@lru_cache(maxsize=64)
def _subject(task: str) -> Mapping[str, int]:
    """Return the words of the task that are looked for, each with its bit."""
    words = sorted(longer_words(task[:TASK_HEAD]))[:MAX_TASK_WORDS]
    return MappingProxyType({word: 1 << bit for bit, word in enumerate(words)})


def _touched(features: Features, before: int) -> int:
    """Return the task's words that a thought or an argument has used so far, as bits."""
    subject = _subject(features.task)
    for used in (features.vocabulary, features.given):
        for word in subject.keys() & used:
            before |= subject[word]
    return before


def _off_task(task: str, touched: int) -> float:
    """Return the share of the task's words that nothing has used so far."""
    subject = _subject(task)
    return round(1 - touched.bit_count() / len(subject), 4) if subject else 0.0


class _Words:
    """The words of the newest steps, in two sets of bits: when the new set is full, it replaces the old one.

    `_places` has the bits of this step's words.
    """

    __slots__ = ("_kept", "_new", "_places")

    def __init__(self, memory: JSON, found: frozenset[str]) -> None:
        self._kept = table(memory)
        self._new = _decoded(self._kept.get("new"))
        self._places = [*map(_place, found)]

    def share(self) -> float:
        """Return the share of this step's words that steps before have used."""
        known = self._new | _decoded(self._kept.get("old"))
        return sum([known >> place & 1 for place in self._places]) / len(self._places) if self._places else 0.0

    def memory(self) -> JSON:
        """Return the memory after this step."""
        new = self._new
        for place in self._places:
            new |= 1 << place
        if new == self._new and self._kept:
            return self._kept
        if new.bit_count() > MAX_WORDS:
            return {"new": "", "old": _encoded(new)}
        return {"new": _encoded(new), "old": self._kept.get("old", "")}


@lru_cache(maxsize=4_096)  # an agent's arguments use the same words again and again
def _place(word: str) -> int:
    return crc32(word.encode("utf-8", "replace")) % PLACES


def _decoded(text: JSON) -> int:
    return int.from_bytes(a2b_base64(text), "little") if isinstance(text, str) else 0


def _encoded(bits: int) -> str:
    return b2a_base64(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), newline=False).decode()
