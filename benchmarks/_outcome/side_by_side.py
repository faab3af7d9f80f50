"""Shows points at which an arm helped or did harm: the steps before, the text, and what followed with and without."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias, get_args

from .rows import Made, Row
from .statistics import OFF, Point, samples

__all__ = ["Pair", "as_json", "pairs", "side_by_side"]

Change: TypeAlias = Literal["helped", "harmed"]
STEPS_BEFORE, STEPS_AFTER = 6, 6
ARGUMENT, RESULT = 40, 120
"""Characters that are shown."""
COLUMN = 76


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A run of `off` and one of the arm from the same point, and how many of the samples of each were won.

    `before` and the calls after the point are shown in one line each, shortened.
    """

    change: Change
    model: str
    through: str
    family: str
    seed: int
    point: int
    kind: str | None
    arm: str
    off_won: tuple[bool, ...]
    arm_won: tuple[bool, ...]
    before: tuple[str, ...]
    text: str
    off_next: tuple[str, ...]
    arm_next: tuple[str, ...]


def pairs(rows: Sequence[Row], count: int) -> list[Pair]:
    """Return so many points at which an arm helped most, and as many at which it did most harm.

    Of each point only the arm that did most is shown. Among equals the order is that of a digest, so that no family
    and no seed comes first.
    """
    found = [
        (abs(difference), "helped" if difference > 0 else "harmed", key, point, arm)
        for key, sample in samples(rows, "branch", 0).items()
        for point in sample.points
        for arm, difference in _extremes(point)
    ]
    found.sort(key=lambda one: (-one[0], _digest(one[3], one[4])))
    chosen: list[Pair] = []
    for change in get_args(Change):
        of_change = [one for one in found if one[1] == change][:count]
        chosen += [_pair(change, *key, point, arm) for _, _, key, point, arm in of_change]
    return chosen


def _extremes(point: Point) -> Iterator[tuple[str, float]]:
    """Yield the arm that won most beyond `off`, and the one that lost most, with the differences."""
    off = point.runs.get(OFF)
    differences = {
        arm: _share(runs) - _share(off) for arm, runs in sorted(point.runs.items()) if off and arm != OFF and runs
    }
    best = max(differences, key=differences.__getitem__, default=None)
    worst = min(differences, key=differences.__getitem__, default=None)
    if best is not None and differences[best] > 0:
        yield best, differences[best]
    if worst is not None and differences[worst] < 0:
        yield worst, differences[worst]


def _share(runs: Mapping[int, Row]) -> float:
    return sum(row.won for row in runs.values()) / len(runs)


def _digest(point: Point, arm: str) -> str:
    return hashlib.sha256(f"{point.family} {point.seed} {arm}".encode()).hexdigest()


def _pair(change: Change, model: str, through: str, point: Point, arm: str) -> Pair:
    off, steered = _typical(point, arm, arm_wins=change == "helped")
    start = steered.point or 0
    return Pair(
        change=change, model=model, through=through, family=point.family, seed=point.seed, point=start,
        kind=point.kind, arm=arm, off_won=_outcomes(point.runs[OFF]), arm_won=_outcomes(point.runs[arm]),
        before=tuple(map(_line, steered.calls[max(0, start - STEPS_BEFORE) : start])),
        text="\n\n".join(told.text for told in steered.told if told.step == start),
        off_next=_next(off, start), arm_next=_next(steered, start),
    )  # fmt: skip


def _typical(point: Point, arm: str, *, arm_wins: bool) -> tuple[Row, Row]:
    """Return a run of `off` and one of the arm that ended as most did, of the same number if there are such."""
    off = {number: row for number, row in point.runs[OFF].items() if row.won != arm_wins}
    steered = {number: row for number, row in point.runs[arm].items() if row.won == arm_wins}
    number = next((number for number in off if number in steered), None)
    if number is None:
        return next(iter(off.values())), next(iter(steered.values()))
    return off[number], steered[number]


def _outcomes(runs: Mapping[int, Row]) -> tuple[bool, ...]:
    return tuple(runs[number].won for number in sorted(runs))


def _next(row: Row, start: int) -> tuple[str, ...]:
    lines = tuple(map(_line, row.calls[start : start + STEPS_AFTER]))
    left = len(row.calls) - start - STEPS_AFTER
    end = f"{'won' if row.won else 'gave up' if row.ended else 'lost'} after {row.steps} calls"
    return (*lines, *([f"... {left} more calls"] if left > 0 else []), end)


def _line(made: Made) -> str:
    if not made.name:
        return f"(no call) {_cut(made.thought, RESULT)}"
    arguments = ", ".join(f"{name}={_cut(_shown(value), ARGUMENT)}" for name, value in made.arguments.items())
    return f"{made.name}({arguments}) -> {_cut(made.output, RESULT)}"


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def side_by_side(rows: Sequence[Row], count: int) -> Iterator[str]:
    """Yield the lines of a page with these pairs; its blocks are indented, so that it is Markdown, too."""
    found = pairs(rows, count)
    for number, pair in enumerate(found, start=1):
        yield f"## {number}. {pair.arm} {pair.change}: {pair.family}, seed {pair.seed}, after {pair.point} calls\n"
        yield (
            f"{pair.model} through {pair.through}{f', {pair.kind}' if pair.kind else ''}; "
            f"off won {_won(pair.off_won)}, {pair.arm} won {_won(pair.arm_won)}.\n"
        )
        yield from ("Before:\n", *(f"    {line}" for line in pair.before), "")
        yield from ("Text:\n", *(f"    {line}" for line in pair.text.splitlines()), "")
        yield "Next, without and with it:\n"
        for off, steered in zip_longest((OFF, *pair.off_next), (pair.arm, *pair.arm_next), fillvalue=""):
            yield f"    {_cut(off, COLUMN):{COLUMN}} | {_cut(steered, COLUMN)}".rstrip()
        yield ""
    places = {(row.family, row.seed) for row in rows if row.phase == "branch"}
    for change in get_args(Change):
        if all(pair.change != change for pair in found):
            yield f"Of {len(places)} branch points, none was {change} by an arm."


def _won(outcomes: Sequence[bool]) -> str:
    return f"{sum(outcomes)} of {len(outcomes)}"


def as_json(found: Sequence[Pair]) -> Iterator[str]:
    """Yield one object a pair."""
    return (json.dumps(asdict(pair)) for pair in found)
