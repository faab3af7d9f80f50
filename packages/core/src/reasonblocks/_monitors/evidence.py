"""What the steps so far say about how a run will end: a few numbers in [0, 1], each the evidence of one monitor.

Each is a mean over the run so far in which a step counts .85 of the one after it; `off_task` and `depth` are what they
are now. None proves trouble: over recorded runs of many agents each goes with failure at equal length of the run, and a
`Calibration` says how much. The three lengths are habits: they mean something for one agent alone.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import cast
from zlib import crc32

from ..types import JSON
from .arguments import longer_words
from .features import Features
from .finding import numbers, table

EVIDENCE: Mapping[str, str] = MappingProxyType(
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
"""Evidence, and the monitor whose it is."""
OWN_MEMORY = "_evidence"
"""Where this keeps its memory among those of the monitors."""

FADES = 0.85
"""What a step counts beside the one after it: after four more steps it is half."""
RECENT = 12
"""Actions looked back over for the same one."""
SHORTEST_LOOK, SHORTEST_RESULT = 8, 40
"""Characters of a result that says something, of a look and of another call: "File updated." comes again and again."""
DEEPEST = 20
"""Steps after which a run is as deep as it gets."""
FEW_WORDS = 25
"""Words of arguments beyond which they are a text, which uses old words anyway."""
MAX_TASK_WORDS = 256
TASK_HEAD = 2_000
"""Characters of the task that are looked at."""
PLACES = 2_048
"""Bits that stand for the words of arguments."""
MAX_WORDS = 320
"""Bits in use after which the older half of the words is forgotten."""
MAX_SHOWN = 4
"""Steps that a monitor's evidence names, at most: the newest."""
LONGEST = 16_000
"""Characters at which a length is 1, on a logarithmic scale."""
_LONGEST = math.log1p(LONGEST)


def gather(features: Features, memory: JSON) -> tuple[Mapping[str, float], JSON]:
    """The evidence after this step by name, and the memory."""
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
        "same_result": asks and _tells(features) and features.result in results,
        "old_words": words.share() if len(features.given) <= FEW_WORDS else 0.0,
        "thought_length": _length(features.lengths[0]),
        "call_length": _length(features.lengths[1]),
        "result_length": _length(features.lengths[2]),
    }
    steps = cast("int", kept.get("steps", 0)) + 1
    means = _means(now, table(kept.get("means")), steps)
    before = _bits_of(kept.get("touched"))
    touched = _touched(features, before)
    left: dict[str, JSON] = {
        "steps": steps,
        "means": dict(means),
        "touched": kept["touched"] if touched == before and kept else _text_of(touched),
        "troubled": trouble or (troubled and not acts),
    }
    newest = numbers(kept, "shown")
    shows = trouble or now["same_outcome"] or (now["same_result"] and not features.empty)
    left["shown"] = [*newest, features.index][-MAX_SHOWN:] if shows else newest
    left["given"] = words.added()
    left["call"] = features.call if acts else kept.get("call")
    left["outcomes"] = [*outcomes, outcome][-RECENT:] if acts else outcomes
    left["results"] = [*results, features.result or 0][-RECENT:] if acts else results
    return {**means, "depth": _depth(steps), "off_task": _off(features.task, touched)}, left


def shown(memory: JSON) -> dict[str, tuple[int, ...]]:
    """By monitor, the newest steps that its evidence comes from."""
    return {"semantic_loop": tuple(numbers(table(memory), "shown"))}


def _tells(features: Features) -> bool:
    looks = not features.roles.isdisjoint(("read", "search"))
    return features.lengths[2] >= (SHORTEST_LOOK if looks else SHORTEST_RESULT)


def _depth(steps: int) -> float:
    return round(math.log(steps) / math.log(DEEPEST), 4) if steps < DEEPEST else 1.0


def _length(characters: int) -> float:
    return math.log1p(min(characters, LONGEST)) / _LONGEST


def _means(now: Mapping[str, float], before: Mapping[str, JSON], steps: int) -> dict[str, float]:
    weight = FADES * ((1 - FADES ** (steps - 1)) / (1 - FADES))
    means: dict[str, float] = {}
    for name, value in now.items():
        mean: float = before.get(name, 0.0)  # type: ignore[assignment]  # as it was left here
        means[name] = round((weight * mean + value) / (weight + 1), 4) if mean or value else 0.0
    return means


@lru_cache(maxsize=64)
def _subject(task: str) -> tuple[str, ...]:
    """The words of the task that are looked for."""
    return tuple(sorted(longer_words(task[:TASK_HEAD])))[:MAX_TASK_WORDS]


def _touched(features: Features, before: int) -> int:
    """The task's words that a thought or an argument has used so far, as bits."""
    for bit, word in enumerate(_subject(features.task)):
        if word in features.vocabulary or word in features.given:
            before |= 1 << bit
    return before


def _off(task: str, touched: int) -> float:
    subject = _subject(task)
    return round(1 - touched.bit_count() / len(subject), 4) if subject else 0.0


class _Words:
    """The words of the newest steps, as two sets of hashes that take turns: when one is full, the older is emptied.

    `places`: where the words of this step have their bits.
    """

    __slots__ = ("_kept", "_new", "_places")

    def __init__(self, memory: JSON, found: frozenset[str]) -> None:
        self._kept = table(memory)
        self._new = _bits_of(self._kept.get("new"))
        self._places = [crc32(word.encode("utf-8", "replace")) % PLACES for word in found]

    def share(self) -> float:
        """Of the words of this step, those that were there before."""
        known = self._new | _bits_of(self._kept.get("old"))
        return sum([known >> at & 1 for at in self._places]) / len(self._places) if self._places else 0.0

    def added(self) -> JSON:
        """What to keep after this step."""
        new = self._new
        for at in self._places:
            new |= 1 << at
        if new == self._new and self._kept:
            return self._kept
        if new.bit_count() > MAX_WORDS:
            return {"new": "", "old": _text_of(new)}
        return {"new": _text_of(new), "old": self._kept.get("old", "")}


def _bits_of(text: JSON) -> int:
    return int.from_bytes(b64decode(text), "little") if isinstance(text, str) else 0


def _text_of(bits: int) -> str:
    return b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "little")).decode()
