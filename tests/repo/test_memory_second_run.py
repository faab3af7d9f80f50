"""The benchmark of a second run: its repository can be solved, its runs end, and its summary counts what was played."""

from __future__ import annotations

from collections.abc import Sequence

import memory_second_run as benchmark
import pytest
from _memory.second_run import MAX_STEPS, Repository
from _outcome.backend import Query, Reply
from _outcome.environment import Call, ToolError


class Scripted:
    """A model that tries to set the value in one file after the other."""

    model, lanes, in_rounds = "scripted", 1, False

    def complete(self, queries: Sequence[Query]) -> list[Reply]:
        (query,) = queries
        tool = query.tools[0]["function"]["name"]
        name, value = (query.choices[key][0] for key in ("set_value.name", "set_value.value"))
        if tool == "memory_recall":
            return [Reply(call=Call(tool, {"query": name}))]
        if tool == "memory_store":
            return [Reply(call=Call(tool, {"content": f"{name} was set", "file_path": ""}))]
        paths = query.choices["set_value.path"]
        tried = sum(message["role"] == "tool" for message in query.messages)
        return [Reply(call=Call("set_value", {"path": paths[tried % len(paths)], "name": name, "value": value}))]

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("task", range(3))
def test_only_the_right_file_takes_the_setting(task: int) -> None:
    repository = Repository(5, task)
    wrong = next(path for path in repository.files if path != repository.path)
    with pytest.raises(ToolError, match="does not assign"):
        repository.call("set_value", {"path": wrong, "name": repository.name, "value": repository.value})
    assert not repository.ended
    repository.call("set_value", {"path": repository.path, "name": repository.name, "value": repository.value})
    assert repository.won


def test_two_tasks_share_a_file_and_the_third_does_not() -> None:
    one, two, three = (Repository(6, task) for task in range(3))
    assert one.files == two.files == three.files
    assert one.path == two.path != three.path
    assert one.name != two.name


def test_a_pair_plays_both_arms_of_every_task_and_counts_the_recall() -> None:
    rows = benchmark.pair(Scripted(), 0, 7)
    assert [(row["task"], row["arm"]) for row in rows] == [
        (task, arm) for task in benchmark.KINDS for arm in ("without", "with")
    ]
    assert all(0 < row["steps"] <= MAX_STEPS for row in rows)
    assert all(row["calls"][0].startswith("memory_recall") == (row["arm"] == "with") for row in rows)


def test_the_summary_is_the_mean_of_the_paired_differences() -> None:
    task = benchmark.KINDS[0]
    steps = {1: (8, 5), 2: (6, 7)}
    rows = [
        {"seed": seed, "task": name, "arm": arm, "won": True, "steps": count}
        for name in benchmark.KINDS
        for seed, both in steps.items()
        for arm, count in zip(("without", "with"), both)
    ]
    (first, *_) = benchmark.summary(rows)
    assert (first["task"], first["pairs"], first["steps_without"], first["steps_with"]) == (task, 2, 7.0, 6.0)
    assert first["steps_difference"][0] == -1.0
