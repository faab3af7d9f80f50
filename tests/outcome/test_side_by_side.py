"""Readers see the points at which an arm did most, with what followed from the same state without it."""

from __future__ import annotations

import json
from dataclasses import replace

from _outcome.rows import Made
from _outcome.side_by_side import as_json, pairs, side_by_side

from tests.outcome.made import branches

ARM = "attic@tail"
LOST, HELPED = {"off": [0, 0], ARM: [0, 0]}, {"off": [0, 0], ARM: [0, 1]}
HELPED_MORE, HARMED = {"off": [0, 0], ARM: [1, 1]}, {"off": [1, 0], ARM: [0, 0]}


def test_the_points_at_which_an_arm_did_most_come_first() -> None:
    rows = branches("house", [LOST, HELPED, HELPED_MORE, HARMED, LOST])
    assert [(pair.change, pair.seed) for pair in pairs(rows, 1)] == [("helped", 2), ("harmed", 3)]
    assert [(pair.change, pair.seed) for pair in pairs(rows, 9)] == [
        ("helped", 2), ("helped", 1), ("harmed", 3),
    ]  # fmt: skip


def test_a_point_is_shown_once_with_the_arm_that_did_most() -> None:
    (pair,) = pairs(branches("house", [{"off": [0, 0], "a@tail": [0, 1], "b@tail": [1, 1]}]), 9)
    assert pair.arm == "b@tail"


def test_the_runs_are_those_that_show_the_change() -> None:
    (pair,) = pairs(branches("house", [HELPED]), 1)
    assert pair.before == tuple(f'go(room="{index}") -> room {index}' for index in range(3))
    assert pair.text == "Go to attic."
    assert pair.off_next == ('try(door="off-1") -> locked',) * 3 + ("lost after 6 calls",)
    assert pair.arm_next == ('try(door="attic-1") -> locked',) * 3 + ("won after 6 calls",)
    assert (pair.off_won, pair.arm_won) == ((False, False), (False, True))


def test_long_results_and_long_runs_are_shortened() -> None:
    long = [
        replace(row, calls=(*row.calls, *[Made(name="read", arguments={"path": "p" * 99}, output="line\n" * 99)] * 5))
        for row in branches("house", [HELPED])
    ]
    (pair,) = pairs(long, 1)
    assert pair.arm_next[-2] == "... 2 more calls"
    assert max(map(len, pair.arm_next)) < 200
    assert not any("\n" in line for line in pair.arm_next)


def test_the_two_runs_stand_beside_each_other() -> None:
    page = "\n".join(side_by_side(branches("house", [HELPED]), 1))
    assert page.startswith(f"## 1. {ARM} helped: house, seed 0, after 3 calls\n")
    assert f"off won 0 of 2, {ARM} won 1 of 2." in page
    beside = [line for line in page.splitlines() if " | " in line]
    assert [line.split(" | ")[0].strip() for line in beside][:2] == ["off", 'try(door="off-1") -> locked']
    assert [line.split(" | ")[1] for line in beside][:2] == [ARM, 'try(door="attic-1") -> locked']


def test_a_pair_is_json() -> None:
    (line,) = as_json(pairs(branches("house", [HARMED]), 1))
    assert (json.loads(line)["change"], json.loads(line)["off_won"]) == ("harmed", [True, False])


def test_without_branches_there_is_nothing_to_show_and_the_page_says_so() -> None:
    assert pairs([], 3) == []
    lines = [f"Of 0 branch points, none was {change} by an arm." for change in ("helped", "harmed")]
    assert [*side_by_side([], 3)] == lines
