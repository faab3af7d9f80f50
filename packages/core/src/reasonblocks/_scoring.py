"""How hard a completed step was: four parts of it, weighed, judged against the agent's own level (BEHAVIOUR section 3).

Of each text the first and last 8,000 characters count.
- hedging and entities: densities in the scored text. Paths and names are no trouble, so they weigh little.
- length: what the model wrote, text and arguments, on a logarithmic scale.
- errors: what the results' own flags say, the words of a result that has none, a little of what the scored text says.
  An error of a test or a script that the agent runs counts half: it is work. The same error or result as in one of the
  last steps counts more each time.

`raw` is their weighed sum. Trouble is what lasts: a step is judged by the decayed mean of `raw` up to it, so that one
bad step fades and a stretch of them adds up. The difficulty is a sigmoid of how many spreads that mean lies above the
agent's own level, the upper edge of what is normal for it: the prior and a margin, drawn towards the run's first 8
steps, their errors left out, and fixed from then on. Agents read first and write later, so a long run may rise by a
fixed amount above it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from zlib import crc32

from ._json import canonical
from ._text import clip, ends, words
from .types import JSON, DifficultyParts, Level, ScoreMemory, Step, ToolResult

SHIPPED_LEVEL = Level(mean=0.19, spread=0.034)
"""Of `raw` without errors, over the first steps of recorded runs of coding, SQL, web and service agents. One whose
decayed mean stays above its own level is in SLOW, one that stays a spread below it in FAST."""
MARGIN = 0.07
"""How far above the prior's mean the level begins, in `raw`: less is left of it the more of the agent is known."""
LEVEL_STEPS = 8
"""The run's first scored steps that shape its level; later trouble is not learned as normal."""
PRIOR_STEPS = 6
"""How many steps of its own the prior weighs as much as."""
DECAY = 0.75
"""What is left of a step's weight one step later. Before the first step the prior has the weight of one."""
RISE, RISE_FROM = 0.14, 12
"""How far a long run may rise above its own level, in `raw`, and the step after which it may: half of it at step 24."""
SLOPE, OFFSET = 1.8, 0.4
"""The difficulty at the own level is .6, where SLOW begins; a spread below it is .2, where FAST does."""
WEIGHTS = DifficultyParts(hedging=0.05, length=0.5, errors=0.25, entities=0.1)
HEDGES_FULL = 0.08
"""Share of hedging words at which that part is 1; likewise ERRORS_FULL, ENTITIES_FULL."""
ERRORS_FULL = 0.06
ENTITIES_FULL = 0.5
LENGTH_UNIT = 50
"""Characters up to which the length part grows nearly in proportion; beyond, by their logarithm."""
LENGTH_FULL = 4_000
"""Characters at which the length part is 1."""
FAILED, FAILED_RUN = 0.7, 0.35
"""The error part of a step with a result that failed; of one that ran a test or a script."""
SAID, SAID_ALONE = 0.2, 0.5
"""What the error words of the scored text weigh beside what results say, and where there are none."""
AGAIN = 0.3
"""What the error part gains for each of the last results that was the same."""
SEEN_KEPT = 12
"""Results that are remembered, as a hash each."""
RESULT_EDGE = 300
"""Characters at each end of a result within which an error announces itself, if no flag says so."""
TELLING = 16
"""A shorter result ("ok", "[]", "1") says nothing when it comes again."""
MIN_WORDS = 12
"""Densities are taken over at least so many words: one "error" in a text of two words is not a flood."""
MAX_RESULTS = 16
"""Results of a step, and calls, that are looked at from each end of it."""
MAX_ARGUMENTS = 200
"""Arguments of a call whose size counts."""
COMMAND_HEAD = 2_000
"""Characters of the arguments within which a test or a script is looked for."""

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
_ENTITY_ASCII = re.compile(_ENTITY.pattern.replace(r"\d", "0-9", 1))
"""The same of ASCII, whose digits are ten: it takes half the time to begin with these."""
_TELLING_WORDS = HEDGES | ERRORS
_LENGTH_FULL = math.log1p(LENGTH_FULL / LENGTH_UNIT)
_RUNS = re.compile(
    r"(?<![a-z])tests?(?![a-z])|pytest|unittest|runtests|\btox\b|\bjest\b|\bmypy\b|\bpython[\d.]*\s+[-\w./]|\bnode\s+\S",
    re.IGNORECASE,
)
"""A test, or a script of the agent's own: its errors are work."""


def score(step: Step, memory: ScoreMemory, level: Level) -> tuple[float, DifficultyParts, ScoreMemory]:
    """The built-in scorer: pure. `level` is the prior; `memory` is what the steps before have left."""
    marks = _marks(step.tool_results)
    came = _failed(step) + AGAIN * sum(map(memory.seen.count, marks))
    parts = _parts(step.scored_text, step.scored_words, _written(step), came, SAID if step.tool_results else SAID_ALONE)
    raw = _raw(parts)
    before = memory.recent if memory.count else level.mean + MARGIN
    recent = before + (raw - before) / _weight(memory.count + 1)
    own = _own(memory, level) + _rise(memory.count + 1)
    after = ScoreMemory(
        count=memory.count + 1,
        total=memory.total + calm_of(parts) if memory.count < LEVEL_STEPS else memory.total,
        recent=recent,
        seen=(*memory.seen, *marks)[-SEEN_KEPT:],
    )
    return _squash(recent, own, level.spread), parts, after


def score_text(text: str, level: Level) -> float:
    """The difficulty of a text by the prior alone: of one such step in a long run at the prior's level."""
    raw = _raw(_parts(text, words(clip(text)), len(text.strip()), 0.0, SAID_ALONE))
    edge = level.mean + MARGIN
    return _squash(edge + (raw - edge) * (1 - DECAY), edge, level.spread)


def calm_of(parts: DifficultyParts) -> float:
    """`raw` without errors: what shapes a level."""
    return WEIGHTS.hedging * parts.hedging + WEIGHTS.length * parts.length + WEIGHTS.entities * parts.entities


def _parts(text: str, tokens: Sequence[str], written: int, came: float, said: float) -> DifficultyParts:
    """`tokens`: the words of the clipped text.

    `written`: characters that the model wrote. `came`: how bad the results are. `said`: what error words weigh."""
    count = max(len(tokens), MIN_WORDS)
    telling = [at for at, token in enumerate(tokens) if token in _TELLING_WORDS]
    hedges = len([at for at in telling if tokens[at] in HEDGES])
    return DifficultyParts(
        hedging=round(min(1.0, hedges / count / HEDGES_FULL), 4),
        length=round(min(1.0, math.log1p(written / LENGTH_UNIT) / _LENGTH_FULL), 4),
        errors=round(min(1.0, came + said * _density(tokens, [at for at in telling if tokens[at] in ERRORS])), 4),
        entities=round(min(1.0, _entities(clip(text)) / count / ENTITIES_FULL), 4),
    )


def _written(step: Step) -> int:
    """Characters of the text and the arguments; a text that is handed to a tool as it is counts once."""
    text = (step.thought if step.thought.strip() else step.reasoning).strip()
    return len(text) + sum([_size(call.arguments, text) for call in ends(step.tool_calls, MAX_RESULTS)])


def _size(value: JSON, text: str) -> int:
    if isinstance(value, str):
        return 0 if value.strip() == text else len(value)
    if isinstance(value, (dict, Mapping)):  # the first answers at once
        items = islice(value.values(), MAX_ARGUMENTS)
        return sum([_size(item, text) if isinstance(item, str) else len(canonical(item)) for item in items])
    return len(canonical(value))


def _failed(step: Step) -> float:
    """How bad the worst result is. Its own flag goes before its words."""
    worst = max(map(_failure, ends(step.tool_results, MAX_RESULTS)), default=0.0)
    if not worst:
        return 0.0
    runs = _RUNS.search(f"{step.action} {step.action_input[:COMMAND_HEAD]}")
    return worst * (FAILED_RUN if runs else FAILED)


def _failure(result: ToolResult) -> float:
    if result.is_error is not None:
        return float(result.is_error)
    text = result.output
    if len(text) <= 2 * RESULT_EDGE:
        return _error_density(words(text))
    return max(_error_density(words(text[:RESULT_EDGE])), _error_density(words(text[-RESULT_EDGE:])))


def _marks(results: Sequence[ToolResult]) -> tuple[int, ...]:
    """A hash of each result that tells: of the start of an error, of the whole of another, numbers left out."""
    return tuple(map(_mark, [result for result in results[-SEEN_KEPT:] if len(result.output) >= TELLING]))


def _mark(result: ToolResult) -> int:
    text = result.output[:RESULT_EDGE] if result.is_error else clip(result.output)
    return crc32(text.encode("utf-8", "replace").translate(None, b"0123456789"))


def _error_density(tokens: Sequence[str]) -> float:
    if ERRORS.isdisjoint(tokens):
        return 0.0
    return _density(tokens, [at for at, token in enumerate(tokens) if token in ERRORS])


def _density(tokens: Sequence[str], errors: Sequence[int]) -> float:
    """Of the error words, where they stand, those that are not negated."""
    hits = len([at for at in errors if not _negated(tokens, at)])
    return min(1.0, hits / max(len(tokens), MIN_WORDS) / ERRORS_FULL)


def _negated(tokens: Sequence[str], at: int) -> bool:
    """ "0 errors", "no more exceptions", "errors: 0" speak of success."""
    before = tokens[max(0, at - 2) : at]
    after = tokens[at + 1 : at + 2]
    return not NEGATIONS.isdisjoint(before) or after in (("0",), ("none",))


def _entities(text: str) -> int:
    """How many blank-separated words have such a mark: each is found once, as the rest of it is taken along."""
    return len((_ENTITY_ASCII if text.isascii() else _ENTITY).findall(text))


def _raw(parts: DifficultyParts) -> float:
    return calm_of(parts) + WEIGHTS.errors * parts.errors


def _weight(count: int) -> float:
    """Of the prior's mean and `count` steps, each step back in time worth DECAY as much; at most 1 / (1 - DECAY)."""
    most = 1 / (1 - DECAY)
    return most - (most - 1) * DECAY**count


def _own(memory: ScoreMemory, prior: Level) -> float:
    """The prior and its margin, drawn towards the run's own first steps as they come in."""
    known = min(memory.count, LEVEL_STEPS)
    return (PRIOR_STEPS * (prior.mean + MARGIN) + memory.total) / (PRIOR_STEPS + known)


def _rise(count: int) -> float:
    return RISE * max(0.0, 1 - RISE_FROM / count)


def _squash(recent: float, own: float, spread: float) -> float:
    z = SLOPE * (recent - own) / spread + OFFSET
    return round(1 / (1 + math.exp(-max(-60.0, min(60.0, z)))), 4)
