"""Writes randomly drawn interventions, or missed troubles, with the steps around them, for readers who judge them.

The outcome and the verdict of hindsight are left out: a reader who knows the end judges by it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, zip_longest

from reasonblocks.types import JSON

from .flat import FlatStep, flat_runs
from .hindsight import EARLY_STEPS
from .sources import Source
from .staleness import troubles
from .trail import Intervention, Trail

__all__ = ["Excerpt", "as_json", "as_markdown", "excerpts", "missed"]

STEPS_BEFORE, STEPS_AFTER = 8, 6
STEPS_IN_SHORT = 40
"""Earlier steps that are given with one line each: a text may count what is longer ago than `STEPS_BEFORE`."""
TASK, THOUGHT, CALL, RESULT = 600, 400, 500, 700
"""Characters that are shown."""
SHORT_CALL, SHORT_RESULT = 100, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """One intervention, and its run's steps: `steps` are numbered from `first`; the text came after step `step`."""

    number: int
    source: str
    run_id: str
    task: str
    step: int
    monitor: str | None
    text: str
    first: int
    steps: Sequence[FlatStep]
    earlier: Sequence[str]


def excerpts(sources: Sequence[Source], trails: Sequence[Sequence[Trail]], count: int, seed: int) -> list[Excerpt]:
    """Return so many, drawn at random, from each source as many as from the others as far as it has them."""
    order = random.Random(seed)
    drawn = [order.sample(found, len(found)) for found in map(_found, sources, trails)]
    in_turn = [one for one in chain.from_iterable(zip_longest(*drawn)) if one is not None][:count]
    order.shuffle(in_turn)
    return [_excerpt(number, *one) for number, one in enumerate(in_turn, start=1)]


def missed(stale: Sequence[Sequence[Sequence[bool]]], trails: Sequence[Sequence[Trail]]) -> list[list[Trail]]:
    """Return trails with an empty text at the last early step of each trouble into which nothing was said so far."""
    return [
        [_missed(flags, trail) for flags, trail in zip(*both, strict=True)] for both in zip(stale, trails, strict=True)
    ]


def _missed(flags: Sequence[bool], trail: Trail) -> Trail:
    said = {one.step for one in trail.interventions}
    begins = [start for start in troubles(flags) if said.isdisjoint(range(start, start + EARLY_STEPS))]
    return Trail(scores=(), told=tuple(Intervention(step=start + EARLY_STEPS - 1) for start in begins))


def _found(source: Source, trails: Sequence[Trail]) -> list[tuple[Source, int, Intervention]]:
    return [(source, place, one) for place, trail in enumerate(trails) for one in trail.interventions]


def _excerpt(number: int, source: Source, place: int, told: Intervention) -> Excerpt:
    run = source.runs[place]
    (steps,) = flat_runs([run])
    first = max(0, told.step + 1 - STEPS_BEFORE)
    skipped = max(0, first - STEPS_IN_SHORT)
    return Excerpt(
        number=number,
        source=source.name,
        run_id=run.run_id,
        task=_cut(run.task, TASK),
        step=told.step,
        monitor=told.monitor,
        text=told.text,
        first=first,
        steps=[_cut_step(step) for step in steps[first : told.step + 1 + STEPS_AFTER]],
        earlier=[_in_short(place, steps[place], told.step) for place in range(skipped, first)],
    )


def _cut_step(step: FlatStep) -> FlatStep:
    limits = {"thought": THOUGHT, "action": CALL, "action_input": CALL, "observation": RESULT}
    return {key: _cut(_text(step, key), limit) for key, limit in limits.items()}


def _in_short(place: int, step: FlatStep, last: int) -> str:
    call = " ".join(f"{_text(step, 'action')} {_text(step, 'action_input')}".split())
    result = " ".join(_text(step, "observation").split())
    return f"{_ago(place, last)}: {_cut(call, SHORT_CALL)} -> {_cut(result, SHORT_RESULT)}"


def _text(step: FlatStep, key: str) -> str:
    value: JSON = step.get(key)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value is not None else ""


def _cut(text: str, limit: int) -> str:
    """Return two thirds of the limit from the start and one from the end, of a text that is longer."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head]} [... {len(text) - limit:,} characters ...] {text[head - limit :]}"


def _ago(place: int, last: int) -> str:
    """Return -1 for the last completed call before the text, -2 for the one before, +1 for the first after it."""
    return f"{place - last - 1 if place <= last else place - last:+d}"


HEAD = """# {count} excerpts

Drawn at random (seed {seed}) from {sources}, from each as many as from the others as far as it
has them. Each text is for the call +1, after the call -1. The runs were not steered: the calls after the text are those
that the agent made without it. Two questions:

- true: is every statement of the text right, by what the run shows above it?
- apt: would a colleague who watched the run have said it, or something like it, at that step?

Without a text nothing was said, though by its staleness the run was in trouble for three steps. One question:

- trouble: would a colleague who watched the run have said something, and what?
"""


def as_markdown(found: Sequence[Excerpt], seed: int) -> Iterator[str]:
    """Yield the lines of a page for readers."""
    names = ", ".join(sorted({one.source for one in found}))
    yield HEAD.format(count=len(found), seed=seed, sources=names)
    for one in found:
        yield f"## {one.number}. {one.source}, {one.run_id}, after step {one.step}{_by(one)}\n"
        yield from _block("Task", one.task)
        if one.earlier:
            yield from _block("Earlier calls", "\n".join(one.earlier))
        for place, step in enumerate(one.steps, start=one.first):
            yield from _block(f"Call {_ago(place, one.step)} (step {place})", _shown(step))
            if place == one.step:
                yield from ("**Text**\n", *(f"> {line}" for line in one.text.splitlines()), _questions(one))


def _by(one: Excerpt) -> str:
    return f" ({one.monitor or 'a lesson'})" if one.text else ""


def _questions(one: Excerpt) -> str:
    return "\ntrue: \napt: \n" if one.text else "(none)\n\ntrouble: \n"


def _shown(step: FlatStep) -> str:
    parts = (
        f"thought: {step['thought']}" if step["thought"] else "",
        f"call: {step['action']} {step['action_input']}".rstrip(),
        f"result: {step['observation']}",
    )
    return "\n".join(filter(None, parts))


def _block(title: str, text: str) -> Iterator[str]:
    """Yield an indented block: whatever the text holds is no Markdown."""
    yield f"{title}:\n"
    yield from (f"    {line}" for line in text.splitlines())
    yield ""


def as_json(found: Sequence[Excerpt]) -> Iterator[str]:
    """Yield one object an excerpt."""
    return (json.dumps(asdict(one), ensure_ascii=False) for one in found)
