"""How hard a completed step was: four parts of it, weighed, judged against the agent's own level (BEHAVIOUR section 3).

The parts are counted on at most the first and last 8,000 characters of each text. `raw` is their weighed sum;
the difficulty is a sigmoid of how many spreads `raw` lies above the agent's level, rounded to four decimals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from .text import clip, words
from .types import DifficultyParts, Level, ScoreMemory, Step

__all__ = ["LEVEL_STEPS", "SHIPPED_LEVEL", "score", "score_text"]

SHIPPED_LEVEL = Level(mean=0.15, spread=0.06)
"""Set by hand over recorded runs of coding, SQL, web and service agents: `raw` is below it on three steps of four."""
LEVEL_STEPS = 8
"""The run's first scored steps that shape its level; later trouble is not learned as normal."""
PRIOR_STEPS = 4
"""How many steps of its own the prior weighs as much as."""
SLOPE = 1.5
OFFSET = -1.6
"""At its own level an agent's difficulty is sigmoid(OFFSET) = .17, below FAST's .2; SLOW's .6 is 1.3 spreads up."""
WEIGHTS = DifficultyParts(hedging=0.25, length=0.2, errors=0.4, entities=0.15)
HEDGES_FULL = 0.08
"""Share of hedging words at which that part is 1; likewise ERRORS_FULL, ENTITIES_FULL."""
ERRORS_FULL = 0.06
ENTITIES_FULL = 0.5
LENGTH_FULL = 400
"""Words at which the length part is 1."""
FLAGGED_ERROR = 0.7
"""The error part of a step whose tool says that it failed, whatever the words."""
MIN_WORDS = 12
"""Densities are taken over at least so many words: one "error" in a text of two words is not a flood."""

HEDGES = frozenset(
    """
    maybe perhaps possibly probably might could may seems seem appears apparently unsure uncertain unclear
    guess assume assuming assumption suspect suppose likely wonder confusing confused confusion strange odd
    weird hmm wait actually somehow unexpected unexpectedly puzzling doubt
    """.split()
)
ERRORS = frozenset(
    """
    error errors exception exceptions fail fails failed failing failure failures traceback fatal invalid
    denied crash crashed unable cannot can't couldn't undefined unresolved panic abort aborted broken
    refused unsupported segfault timeout timedout
    """.split()
)
NEGATIONS = frozenset("no 0 zero without not never none fixed resolved".split())
_ENTITY = re.compile(r"[\d/\\_.:A-Z](?:(?<=\d)|(?<=\w[/\\_.:])(?=\w)|(?<=[a-z][A-Z]))\S*")
"""What makes a word a name of something (a digit, an inner separator, an inner capital), and the rest of the word."""


def score(step: Step, memory: ScoreMemory, level: Level) -> tuple[float, DifficultyParts, ScoreMemory]:
    """The built-in scorer: pure. `level` is the prior; `memory` holds the agent's own first steps."""
    parts = _parts(clip(step.scored_text), *_outcome(step))
    raw = _raw(parts)
    return _squash(raw, _own_level(memory, level)), parts, _remember(memory, raw)


def score_text(text: str, level: Level) -> float:
    """The difficulty of a text by the prior alone."""
    return _squash(_raw(_parts(clip(text), None, "")), level)


def _outcome(step: Step) -> tuple[bool | None, str]:
    """The observation's own flag, and its words where there is no flag and they are not scored already."""
    flag = step.is_error
    if flag is not None or not (step.thought.strip() or step.reasoning.strip()):
        return flag, ""
    return None, "\n".join(clip(result.output) for result in step.tool_results)


def _parts(text: str, flag: bool | None, observation: str) -> DifficultyParts:
    tokens = words(text)
    count = max(len(tokens), MIN_WORDS)
    hedges = sum(map(HEDGES.__contains__, tokens))
    said = _error_density(tokens) if flag is None else 0.5 * _error_density(tokens)
    came = FLAGGED_ERROR if flag else _error_density(words(clip(observation))) if observation else 0.0
    return DifficultyParts(
        hedging=round(min(1.0, hedges / count / HEDGES_FULL), 4),
        length=round(min(1.0, len(tokens) / LENGTH_FULL), 4),
        errors=round(min(1.0, max(said, came) + 0.3 * min(said, came)), 4),
        entities=round(min(1.0, _entities(text) / count / ENTITIES_FULL), 4),
    )


def _error_density(tokens: Sequence[str]) -> float:
    if ERRORS.isdisjoint(tokens):
        return 0.0
    hits = sum(1 for at, token in enumerate(tokens) if token in ERRORS and not _negated(tokens, at))
    return min(1.0, hits / max(len(tokens), MIN_WORDS) / ERRORS_FULL)


def _negated(tokens: Sequence[str], at: int) -> bool:
    """ "0 errors", "no more exceptions", "errors: 0" speak of success."""
    before = tokens[max(0, at - 2) : at]
    after = tokens[at + 1 : at + 2]
    return not NEGATIONS.isdisjoint(before) or after in (("0",), ("none",))


def _entities(text: str) -> int:
    """How many blank-separated words have such a mark: each is found once, as the rest of it is taken along."""
    return len(_ENTITY.findall(text))


def _raw(parts: DifficultyParts) -> float:
    return (
        WEIGHTS.hedging * parts.hedging
        + WEIGHTS.length * parts.length
        + WEIGHTS.errors * parts.errors
        + WEIGHTS.entities * parts.entities
    )


def _own_level(memory: ScoreMemory, prior: Level) -> Level:
    """The prior, drawn towards the run's own first steps as they come in."""
    if not memory.count:
        return prior
    weight = PRIOR_STEPS + memory.count
    mean = (PRIOR_STEPS * prior.mean + memory.total) / weight
    own = memory.total / memory.count
    variance = max(0.0, memory.squares / memory.count - own * own)
    spread = math.sqrt((PRIOR_STEPS * prior.spread**2 + memory.count * variance) / weight)
    return Level(mean=mean, spread=max(spread, prior.spread / 2))


def _remember(memory: ScoreMemory, raw: float) -> ScoreMemory:
    if memory.count >= LEVEL_STEPS:
        return memory
    return ScoreMemory(count=memory.count + 1, total=memory.total + raw, squares=memory.squares + raw * raw)


def _squash(raw: float, level: Level) -> float:
    z = SLOPE * (raw - level.mean) / level.spread + OFFSET
    return round(1 / (1 + math.exp(-max(-60.0, min(60.0, z)))), 4)
