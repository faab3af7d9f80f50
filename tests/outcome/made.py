"""Rows as an experiment would leave them, from lists of outcomes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from _outcome.rows import Made, Row, Told

POINT = 3


def shadow(family: str, seed: int, *, won: bool = False, point: int | None = POINT) -> Row:
    calls = tuple(Made(name="go", arguments={"room": str(index)}, output=f"room {index}") for index in range(8))
    return Row(
        model="small", through="loop", phase="shadow", family=family, seed=seed, arm="off", sample=0, won=won,
        ended=won, steps=len(calls), point=point, prompt=100, evaluated=50, calls=calls,
        kind=None if point is None else "loop", monitor=None if point is None else "alternation",
    )  # fmt: skip


def branch(family: str, seed: int, arm: str, sample: int, won: bool, **changes: object) -> Row:
    """A branch of six calls from point 3. A steered one was told "Go to NAME." for the arm NAME@placement."""
    word = arm.partition("@")[0]
    before = tuple(Made(name="go", arguments={"room": str(index)}, output=f"room {index}") for index in range(POINT))
    after = tuple(Made(name="try", arguments={"door": f"{word}-{sample}"}, output="locked") for _ in range(3))
    text = Told(step=POINT, text=f"Go to {word}.", monitor="alternation", kind="loop", sources=("monitors",))
    given = {
        "model": "small", "through": "loop", "phase": "branch", "family": family, "seed": seed, "arm": arm,
        "sample": sample, "won": won, "ended": won, "steps": 6, "point": POINT, "kind": "loop",
        "monitor": "alternation", "winnable": True, "prompt": 100, "evaluated": 50, "completion": 10,
        "told": () if arm == "off" else (text,), "calls": before + after, **changes,
    }  # fmt: skip
    return Row(**given)  # type: ignore[arg-type]


def branches(family: str, outcomes: Sequence[Mapping[str, Sequence[int]]], first_seed: int = 0) -> list[Row]:
    """The branches of one point after the other, each given as the outcomes of its samples by arm, 1 for a win."""
    return [
        branch(family, seed, arm, sample, bool(won))
        for seed, by_arm in enumerate(outcomes, start=first_seed)
        for arm, wins in by_arm.items()
        for sample, won in enumerate(wins)
    ]


def drawn(
    points: int, chances: Mapping[str, float], *, seed: int, samples: int = 2, family: str = "house"
) -> list[Row]:
    """Branches whose samples are won with the arm's chance."""
    chance = random.Random(seed)

    def outcomes() -> Iterator[Mapping[str, Sequence[int]]]:
        for _ in range(points):
            yield {arm: [int(chance.random() < of_arm) for _ in range(samples)] for arm, of_arm in chances.items()}

    return branches(family, [*outcomes()])
