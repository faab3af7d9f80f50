"""Measures whether a second run on the same codebase needs fewer calls with memory than without.

A local model plays pairs of runs. In the first run it finds a setting in a seeded repository and changes it; then it is
asked for one note, which `memory_store` keeps. The second run has a task in the same repository: once without a memory,
once with `memory_recall` as its first call, which counts as a step. Both begin from the same seeds. Storing and
recalling are forced, so this measures what a note is worth, not whether a model uses the tools by itself.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _memory.second_run import MAX_STEPS, Repository, declared
from _outcome.backend import Backend, BackendError, Query
from _outcome.environment import Tool, ToolError
from _outcome.models import FetchError, fetch

from reasonblocks.memory import CodebaseMemory, MemoryTool, memory_tools

KINDS = ("the same setting", "another setting of the same file", "a setting of another file")
ASK_FOR_A_NOTE = (
    "The task has ended. Store one note for the next run on this repository: which file assigns which settings."
)
RESAMPLES = 2_000


class Play:
    """One run: a conversation, its tools, and the steps so far."""

    def __init__(self, model: Backend, lane: int, seed: int, repository: Repository, memory: Sequence[MemoryTool]):
        self._model, self._lane, self._seed, self._repository = model, lane, seed, repository
        self._memory = {tool.name: tool for tool in memory}
        self._messages: list[dict[str, Any]] = [
            {"role": "system", "content": repository.system},
            {"role": "user", "content": repository.order},
        ]
        self.steps = 0
        self.calls: list[str] = []

    def to_the_end(self, *, recall: bool) -> None:
        """Make calls until the task has ended or the steps are used up."""
        if recall:
            self.step([self._declared("memory_recall")])
        while self.steps < MAX_STEPS and not self._repository.ended:
            self.step(self._repository.tools)

    def note(self) -> None:
        """Ask for a note, which is no step."""
        self._messages.append({"role": "user", "content": ASK_FOR_A_NOTE})
        self.step([self._declared("memory_store")])
        self.steps -= 1

    def step(self, tools: Sequence[Tool]) -> None:
        query = Query(
            messages=self._messages,
            tools=tools,
            lane=self._lane,
            seed=self._seed * 1_000 + self.steps,
            choices=self._repository.choices(),
        )
        reply = self._model.complete([query])[0]
        self.steps += 1
        if reply.call is None:
            self._messages.append({"role": "assistant", "content": reply.text})
            self._messages.append({"role": "user", "content": "Make one call of a tool."})
            return
        name, arguments = reply.call
        call = {"id": f"c{len(self.calls)}", "type": "function"}
        function = {"name": name, "arguments": json.dumps(arguments)}
        self._messages.append({"role": "assistant", "content": "", "tool_calls": [{**call, "function": function}]})
        result = self._result(name, arguments)
        self._messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        self.calls.append(f"{name} {json.dumps(arguments)} -> {result}")

    def _result(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name in self._memory:
            return self._memory[name].call(arguments).text
        try:
            return self._repository.call(name, arguments)
        except ToolError as error:
            return f"Error: {error}"

    def _declared(self, name: str) -> Tool:
        tool = self._memory[name]
        required = {key: about for key, about in tool.parameters["properties"].items() if key in NEEDED[name]}
        return declared(name, tool.description, {"type": "object", "properties": required, "required": [*required]})


NEEDED = {"memory_recall": ("query",), "memory_store": ("content", "file_path")}


def pair(model: Backend, lane: int, seed: int, kinds: Sequence[int] = range(len(KINDS))) -> list[dict[str, Any]]:
    """Play the runs of one seed and return a row for each second run."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        first = Repository(seed, 0)
        for path in first.files:
            Path(folder, path).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, path).write_text(first.text_of(path), encoding="utf-8")
        with CodebaseMemory(f"seed/{seed}", store=Path(folder, "memory.db"), root=folder) as memory:
            tools = memory_tools(memory)
            run = Play(model, lane, seed, first, tools)
            run.to_the_end(recall=False)
            run.note()
            for kind in kinds:
                name = KINDS[kind]
                for arm in ("without", "with"):
                    repository = Repository(seed, kind)
                    play = Play(model, lane, seed + 500_000, repository, tools)
                    play.to_the_end(recall=arm == "with")
                    rows.append(
                        {"seed": seed, "task": name, "arm": arm, "won": repository.won, "steps": play.steps,
                         "first_won": first.won, "note": run.calls[-1] if run.calls else "", "calls": play.calls}
                    )  # fmt: skip
    return rows


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval by resampling seeds."""
    chance = random.Random(0)
    means = sorted(sum(chance.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES))
    return sum(values) / len(values), means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]


def summary(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Compare the arms by kind of task; a lost run counts with all its steps."""
    found = []
    for task in dict.fromkeys(row["task"] for row in rows):
        by = {(row["seed"], row["arm"]): row for row in rows if row["task"] == task}
        seeds = sorted({seed for seed, _ in by})
        pairs = [(by[seed, "without"], by[seed, "with"]) for seed in seeds]
        steps = interval([float(more["steps"] - less["steps"]) for less, more in pairs])
        won = interval([float(more["won"] - less["won"]) for less, more in pairs])
        found.append(
            {
                "task": task,
                "pairs": len(pairs),
                "steps_without": round(sum(less["steps"] for less, _ in pairs) / len(pairs), 2),
                "steps_with": round(sum(more["steps"] for _, more in pairs) / len(pairs), 2),
                "steps_difference": [round(value, 2) for value in steps],
                "won_without": sum(less["won"] for less, _ in pairs),
                "won_with": sum(more["won"] for _, more in pairs),
                "won_difference": [round(value, 3) for value in won],
            }
        )
    return found


def main() -> None:
    options = argparse.ArgumentParser(prog="memory_second_run", description=__doc__)
    options.add_argument("--gguf", default="smollm2", metavar="FILE", help="a file, or smollm2 or qwen2.5-coder-1.5b")
    options.add_argument("--seeds", type=int, default=20, metavar="N", help="pairs of each task (default 20)")
    options.add_argument("--first-seed", type=int, default=1_000, metavar="N", help="the first seed (default 1000)")
    options.add_argument("--task", type=int, choices=range(len(KINDS)), help="only this task of the three")
    options.add_argument("--lanes", type=int, default=2, metavar="N", help="runs at a time (default 2)")
    options.add_argument("--temperature", type=float, default=0.3, metavar="T")
    options.add_argument("--guided", action="store_true", help="limit arguments to valid values, for a tiny model")
    options.add_argument("--out", metavar="FILE", help="append every run as JSON Lines")
    options.add_argument("--json", action="store_true", help="one JSON object a line")
    given = options.parse_args()
    from _outcome.backends.local import LocalBackend

    try:
        path = Path(given.gguf) if Path(given.gguf).is_file() else fetch(given.gguf)
        model = LocalBackend(path, lanes=given.lanes, temperature=given.temperature, guided=given.guided)
        kinds = range(len(KINDS)) if given.task is None else (given.task,)
        seeds = range(given.first_seed, given.first_seed + given.seeds)
        rows = played(model, seeds, kinds, given.lanes, given.out)
        model.close()
    except (BackendError, FetchError, ImportError) as error:
        sys.exit(f"memory_second_run: {error}")
    for line in summary(rows):
        line = {"model": path.stem, **line}
        print(json.dumps(line) if given.json else as_text(line))


def played(model: Backend, seeds: range, kinds: Sequence[int], lanes: int, out: str | None) -> list[dict[str, Any]]:
    """Play all seeds, as many at a time as there are lanes."""
    rows: list[dict[str, Any]] = []

    def lane_of(lane: int) -> list[list[dict[str, Any]]]:
        found = []
        for seed in seeds[lane::lanes]:
            found.append(pair(model, lane, seed, kinds))
            print(f"seed {seed} of {seeds.start} to {seeds.stop - 1}", file=sys.stderr)
            if out:
                with open(out, "a", encoding="utf-8") as file:
                    file.writelines(json.dumps(row) + "\n" for row in found[-1])
        return found

    with ThreadPoolExecutor(lanes) as threads:
        for found in threads.map(lane_of, range(lanes)):
            rows += [row for group in found for row in group]
    return rows


def as_text(line: Mapping[str, Any]) -> str:
    difference, low, high = line["steps_difference"]
    return (
        f"{line['model']}, {line['task']}, {line['pairs']} pairs: calls {line['steps_without']} without and "
        f"{line['steps_with']} with memory ({difference:+} [{low:+}, {high:+}]), "
        f"won {line['won_without']} and {line['won_with']}"
    )


if __name__ == "__main__":
    main()
