"""Scores how hard a completed step was: by the agent's own level, and by what it brought (BEHAVIOUR section 3).

A step has four parts, each in [0, 1]. Only the first and last 8,000 characters of each text count.
- Hedging and entities are densities in the scored text. Paths and names are no trouble, so entities have a low weight.
- Length is that of the text and the arguments that the model wrote, on a logarithmic scale.
- Errors are the results' own flags, the words of results without a flag, and to a lesser degree those of the scored
  text. An error of a test or a script that the agent runs counts half, because it is work.

`raw` is the weighted sum. Trouble lasts, so a step is scored by the decayed mean of `raw` up to it: one bad step fades,
and several in a row add up. The mean's distance from the agent's own level counts, in spreads. The level is the upper
edge of what is normal for the agent. It begins at the prior plus a margin, moves towards the run's first 8 steps,
without their errors, and is fixed from then on. Agents read first and write later, so the level of a long run rises by
a fixed amount.

Steps that bring something are easier, and dead ones harder (the account decides which they are), by their decayed mean.
The difficulty is a sigmoid of both. A dead step closes a part of the difficulty's distance from 1, and so does each
further one: however quiet the steps are, five in a row are over .85, and forty reach SKIP. Each step that brings
something halves the count. A step that waits for a running process changes neither the mean nor the count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice

from ..types import JSON, DifficultyParts, Level, ScoreMemory, Step, ToolResult
from ..types.account import Did
from ..util.json import canonical
from ..util.text import clip, ends, words

MARGIN = 0.07
"""Distance of the first level above the prior's mean, in `raw`; it shrinks as the run's own steps come in."""
LEVEL_STEPS = 8
"""The run's first scored steps that shape its level; later trouble is not learned as normal."""
PRIOR_STEPS = 6
"""Weight of the prior, in steps of the run."""
DECAY = 0.75
"""Weight of a step relative to the one after it. Before the first step the prior has the weight of one step."""
RISE, RISE_FROM = 0.14, 12
"""The highest rise of a long run's level, in `raw`, and the step after which it begins; half of it is reached at step
24."""
SLOPE, OFFSET = 1.25, 0.4
"""Parameters of the sigmoid: at the own level, if half of the results is new, the difficulty is .6: SLOW begins."""
NEWS, HALF_NEW, BROUGHT = 8.0, 0.5, 0.6
"""The weight of what the steps brought, the mean that makes a step neither easier nor harder, and the value of a step
that is not dead."""
STALLED = 0.65
"""Part of the difficulty's distance from 1 that each dead step leaves. The first one ends FAST."""
MAX_STALL = 8
"""The highest count of such steps, so that a long stall is forgotten as soon as a short one: SKIP ends after three
other steps."""
WEIGHTS = DifficultyParts(hedging=0.05, length=0.5, errors=0.25, entities=0.1)
"""The weight of each part in `raw`."""
HEDGES_FULL = 0.08
"""Share of hedging words at which that part is 1."""
ERRORS_FULL = 0.06
"""Share of error words at which a text's density of errors is 1."""
ENTITIES_FULL = 0.5
"""Share of names at which that part is 1."""
LENGTH_UNIT = 50
"""Characters up to which the length part grows nearly in proportion; above, it grows with their logarithm."""
LENGTH_FULL = 4_000
"""Characters at which the length part is 1."""
FAILED, FAILED_RUN = 0.7, 0.35
"""Error part of a step with a failed result, and of one that ran a test or a script."""
SAID, SAID_ALONE = 0.2, 0.5
"""Weight of the scored text's error words in a step with results, and in one without."""
RESULT_EDGE = 300
"""Characters at each end of a result without a flag in which error words count."""
MIN_WORDS = 12
"""Words that a density is taken over, at least: one "error" in a text of two words is not a flood."""
MAX_RESULTS = 16
"""Results, and calls, of a step that are read from each end."""
MAX_ARGUMENTS = 200
"""Arguments of a call whose size counts: the first ones."""
COMMAND_HEAD = 2_000
"""Characters of the arguments in which a test or a script is looked for."""

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
"""The mark of a name (a digit, an inner separator, an inner capital), and the rest of the word, so that a word is found
once."""
_LENGTH_FULL = math.log1p(LENGTH_FULL / LENGTH_UNIT)
_RUNS = re.compile(
    r"(?<![a-z])tests?(?![a-z])|pytest|unittest|runtests|\btox\b|\bjest\b|\bmypy\b|\bpython[\d.]*\s+[-\w./]|\bnode\s+\S",
    re.IGNORECASE,
)
"""A test, or a script of the agent's own, whose errors are work."""


def score(
    step: Step, memory: ScoreMemory, level: Level, did: Did, *, easy: float = 0.0
) -> tuple[float, DifficultyParts, ScoreMemory]:
    """Return the difficulty, its parts and the new memory; a pure function. `level` is the prior.

    `did` is the step's part of the account: one that waits for a running process was not expected to bring anything. A
    dead step and one that failed are at least `easy`, so that they are never easy.
    """
    parts, waits = parts_of(step), did.waiting and not did.dead
    raw, count = _raw(parts), memory.count + 1
    before = memory.recent if memory.count else level.mean + MARGIN
    after = ScoreMemory(
        count=count,
        total=memory.total + calm_of(parts) if memory.count < LEVEL_STEPS else memory.total,
        recent=before + (raw - before) / _weight(count),
        fresh=_fresh(memory, None if waits else did.dead),
        stall=memory.stall if waits else _stall(memory, dead=did.dead),
    )
    own = _own(memory, level) + _rise(count)
    eased = _sigmoid(SLOPE * (after.recent - own) / level.spread + OFFSET - NEWS * (after.fresh - HALF_NEW))
    difficulty = 1 - (1 - eased) * STALLED**after.stall
    if did.dead or did.failed:
        difficulty = max(easy, difficulty)
    return round(difficulty, 4), parts, after


def _fresh(memory: ScoreMemory, dead: bool | None) -> float:
    """Return the decayed mean of what the steps brought."""
    before = memory.fresh if memory.count else HALF_NEW
    if dead is None:
        return before
    return before + ((0.0 if dead else BROUGHT) - before) / _weight(memory.count + 1)


def _stall(memory: ScoreMemory, *, dead: bool) -> float:
    """Return the count of dead steps."""
    return min(float(MAX_STALL), memory.stall + 1) if dead else memory.stall / 2


def score_text(text: str, level: Level) -> float:
    """Return the difficulty of a text by the prior alone: of one such step in a long run at the prior's level."""
    raw = _raw(_parts(text, words(clip(text)), len(text.strip()), 0.0, SAID_ALONE))
    distance = (raw - level.mean - MARGIN) * (1 - DECAY)
    return round(_sigmoid(SLOPE * distance / level.spread + OFFSET), 4)


def parts_of(step: Step) -> DifficultyParts:
    """Return the four parts of the step's difficulty."""
    said = SAID if step.tool_results else SAID_ALONE
    return _parts(step.scored_text, step.scored_words, _written(step), _failed(step), said)


def calm_of(parts: DifficultyParts) -> float:
    """Return `raw` without errors, which shapes a level."""
    return WEIGHTS.hedging * parts.hedging + WEIGHTS.length * parts.length + WEIGHTS.entities * parts.entities


def _parts(text: str, tokens: Sequence[str], written: int, failed: float, weight: float) -> DifficultyParts:
    """Return the four parts of a difficulty.

    `tokens`: the words of the clipped text. `written`: characters that the model wrote. `failed`: the error part of the
    results. `weight`: the weight of the text's error words.
    """
    count = max(len(tokens), MIN_WORDS)
    hedges = len([token for token in tokens if token in HEDGES])
    return DifficultyParts(
        hedging=round(min(1.0, hedges / count / HEDGES_FULL), 4),
        length=round(min(1.0, math.log1p(written / LENGTH_UNIT) / _LENGTH_FULL), 4),
        errors=round(min(1.0, failed + weight * _error_density(tokens)), 4),
        entities=round(min(1.0, len(_ENTITY.findall(clip(text))) / count / ENTITIES_FULL), 4),
    )


def _written(step: Step) -> int:
    """Return the characters of the text and the arguments; a text that is also passed to a tool counts once."""
    text = (step.thought if step.thought.strip() else step.reasoning).strip()
    return len(text) + sum(_size(call.arguments, text) for call in ends(step.tool_calls, MAX_RESULTS))


def _size(value: JSON, text: str) -> int:
    if isinstance(value, str):
        return 0 if value.strip() == text else len(value)
    if isinstance(value, Mapping):
        items = islice(value.values(), MAX_ARGUMENTS)
        return sum(_size(item, text) if isinstance(item, str) else len(canonical(item)) for item in items)
    return len(canonical(value))


def _failed(step: Step) -> float:
    """Return the error part of the worst result."""
    worst = max(map(_failure, ends(step.tool_results, MAX_RESULTS)), default=0.0)
    if not worst:
        return 0.0
    runs = _RUNS.search(f"{step.action} {step.action_input[:COMMAND_HEAD]}")
    return worst * (FAILED_RUN if runs else FAILED)


def _failure(result: ToolResult) -> float:
    """Return how surely the result is an error, 0 to 1; its own flag goes before its words."""
    if result.is_error is not None:
        return float(result.is_error)
    text = result.output
    if len(text) <= 2 * RESULT_EDGE:
        return _error_density(words(text))
    return max(_error_density(words(text[:RESULT_EDGE])), _error_density(words(text[-RESULT_EDGE:])))


def _error_density(tokens: Sequence[str]) -> float:
    """Return the density, 0 to 1, of the error words that are not negated."""
    hits = len([at for at, token in enumerate(tokens) if token in ERRORS and not _negated(tokens, at)])
    return min(1.0, hits / max(len(tokens), MIN_WORDS) / ERRORS_FULL)


def _negated(tokens: Sequence[str], at: int) -> bool:
    """Return True for an error word that reports success: "0 errors", "no more exceptions", "errors: 0"."""
    before = tokens[max(0, at - 2) : at]
    after = tokens[at + 1 : at + 2]
    return not NEGATIONS.isdisjoint(before) or after in (("0",), ("none",))


def _raw(parts: DifficultyParts) -> float:
    return calm_of(parts) + WEIGHTS.errors * parts.errors


def _weight(count: int) -> float:
    """Return the sum of the weights of `count` steps and of the prior before them; it approaches 1 / (1 - DECAY)."""
    most = 1 / (1 - DECAY)
    return most - (most - 1) * DECAY**count


def _own(memory: ScoreMemory, prior: Level) -> float:
    """Return the level: the prior plus its margin, averaged with the run's own first steps as they come in."""
    known = min(memory.count, LEVEL_STEPS)
    return (PRIOR_STEPS * (prior.mean + MARGIN) + memory.total) / (PRIOR_STEPS + known)


def _rise(count: int) -> float:
    """Return how far the level of a run of `count` steps has risen."""
    return RISE * max(0.0, 1 - RISE_FROM / count)


def _sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, z))))
