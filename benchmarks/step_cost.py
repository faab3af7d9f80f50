"""What one step of steering costs: `begin_step` + `end_step`, early and late in a run.

Mode `plain` is a client as it comes. In mode `patterns` it has 1,000 patterns of its own over the library's, and every
measured step asks for both tiers that are searched: between two steps the run is restored with its tiers unused.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

from reasonblocks import (
    LocalStore,
    Pattern,
    ReasonBlocks,
    SteeringSession,
    Step,
    StepInput,
    StepOutcome,
    ToolCall,
    ToolResult,
    Usage,
)
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks.util.json import compact

SEED = 20
POINTS = (10, 100, 1_000, 10_000)
THOUGHT_WORDS = 100
RESULT_WORDS = 40
PATTERNS = 1_000
NEVER_FAST = 1e-6
"""Threshold under which no step comes: in FAST nothing is retrieved."""
TIERS_UNUSED = {"asked": 0, "used": False, "next_call": 0}
RESTART_AFTER = 10
"""The session at step 10 begins a new run after so many measured steps: they stay steps 10 to 19."""
WORDS = (
    "the a this that then now first next after before again still only each every same other new old last we it I "
    "need want should check look read open run try change add remove move keep find see know think compare follow "
    "test tests case value name list line file module function class method call argument return result output input "
    "parser reader writer cache index table row column key type string number date time zone path folder config "
    "branch loop condition default option flag request response header body status code server client session query "
    "expected actual wrong right missing empty short long left right between inside outside because since while when "
    "where which but and or not so if with without from into over under about maybe probably seems error fails"
).split()
LESSON_WORDS = (
    "invoice shipment warehouse customer refund ticket passenger booking seat fare airline hotel currency ledger "
    "account payment tax discount coupon basket order stock supplier carton pallet truck route driver customs freight"
).split()
KINDS = ("contradiction", "loop", "unverified", "churn", "sprawl", "drift")
TOOLS = ("bash", "read_file", "edit_file", "search")

COLUMNS = {
    "mode": 9, "at step": 9, "p50 us": 9, "p95 us": 9, "p99 us": 9,
    "re.findall": 12, "snapshot": 10, "retrieving p50 us (steps)": 28,
}  # fmt: skip


@dataclass
class Script:
    """The steps of a run, the same ones for every run: text is made from the seed and the step's number."""

    step: int = 0

    def text(self, count: int, salt: str, words: Sequence[str] = WORDS) -> str:
        return " ".join(random.Random(f"{SEED} {salt} {self.step}").choices(words, k=count))

    def next(self) -> tuple[Step, StepOutcome]:
        """What call `step` says and does, and the step that it completes."""
        thought, call_id = self.text(THOUGHT_WORDS, "thought"), f"call-{self.step}"
        arguments = {"path": f"src/module_{self.step % 37}.py", "command": f"pytest -k case_{self.step}"}
        calls = (ToolCall(id=call_id, name=TOOLS[self.step % len(TOOLS)], arguments=arguments),)
        results = (ToolResult(call_id=call_id, output=self.text(RESULT_WORDS, "result"), is_error=False),)
        self.step += 1
        outcome = StepOutcome(model="bench", usage=Usage(input=2_000, output=150), text=thought, tool_calls=calls)
        return Step(thought=thought, tool_calls=calls, tool_results=results), outcome


@dataclass
class Run:
    """One steered run, and how long its steps took, in seconds."""

    rb: ReasonBlocks
    session: SteeringSession = field(init=False)
    script: Script = field(init=False)
    completed: Step | None = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.session = self.rb.session(task="Find out why the parser fails for an empty list and fix it.")
        self.script = Script()
        self.completed = None

    def step(self) -> float:
        given = StepInput(key=f"key-{self.script.step}", completed=self.completed, default_model="bench")
        self.completed, outcome = self.script.next()
        started = time.perf_counter()
        decision = self.session.begin_step(given)
        self.session.end_step(decision, outcome)
        return time.perf_counter() - started

    def advance(self, step: int) -> None:
        while self.script.step < step:
            self.step()

    def ask_again(self) -> None:
        """The next step may ask for every tier, and the gate of e1 is open."""
        opened = {"e1": TIERS_UNUSED, "e2": TIERS_UNUSED, "fired_before": [True, True]}
        self.session.trace.restore({**self.session.trace.snapshot(), **opened})

    @property
    def retrievals(self) -> int:
        return self.session.trace.state.e1.asked + self.session.trace.state.e2.asked

    @property
    def snapshot_bytes(self) -> int:
        return len(compact(self.session.trace.snapshot()).encode())


@dataclass
class Samples:
    """Seconds of the steps at one point, and of those among them that asked the pattern store."""

    every: list[float] = field(default_factory=list)
    asking: list[float] = field(default_factory=list)


def patterns() -> Iterator[Pattern]:
    """Lessons that share words with the steps: each is compared with the query, none is near enough to be said."""
    for number in range(PATTERNS):
        text = Script(number).text(THOUGHT_WORDS, "lesson", [*WORDS[:20], *LESSON_WORDS, *LESSON_WORDS])
        yield Pattern(
            id=f"lesson-{number:04}",
            tier="e2" if number % 2 else "e1",
            org_id=None if number % 2 else "default",
            failure_type=KINDS[number % len(KINDS)],
            fields={"observation": text, "recommended_action": text, "diagnosis": text, "intervention": text},
            exemplars=(text,),
        )


def client(mode: str) -> ReasonBlocks:
    if mode == "plain":
        return ReasonBlocks()
    store = LocalStore(patterns=patterns(), layer=starter_patterns())
    return ReasonBlocks(pattern_store=store, fsm_thresholds={"fast_threshold": NEVER_FAST}, strict=True)


def measure(mode: str, steps: int) -> Iterator[dict[str, object]]:
    """All points, one step of each in turn, so that what else the machine does meets them alike."""
    rb = client(mode)
    runs = {point: Run(rb) for point in POINTS}
    samples = {point: Samples() for point in POINTS}
    yardstick: list[float] = []
    for point, run in runs.items():
        run.advance(point)
    for _ in range(steps):
        yardstick.append(tokenise(runs[POINTS[0]].completed))
        for point, run in runs.items():
            if point == POINTS[0] and run.script.step >= point + RESTART_AFTER:
                run.restart()
                run.advance(point)
            if mode == "patterns":
                run.ask_again()
            take(run, samples[point])
    for point, run in runs.items():
        yield line(mode, point, run, samples[point], median(yardstick))


def take(run: Run, samples: Samples) -> None:
    before = run.retrievals
    seconds = run.step()
    samples.every.append(seconds)
    if run.retrievals > before:
        samples.asking.append(seconds)


def tokenise(step: Step | None) -> float:
    """The yardstick: what Python itself needs to cut one step's text into words."""
    text = step.thought + step.tool_results[0].output if step else ""
    started = time.perf_counter()
    re.findall(r"\w+", text.lower())
    return time.perf_counter() - started


def line(mode: str, point: int, run: Run, samples: Samples, yardstick: float) -> dict[str, object]:
    p50 = median(samples.every)
    percentiles = quantiles(samples.every, n=100)
    return {
        "mode": mode,
        "at": point,
        "p50_us": round(p50 * 1e6, 1),
        "p95_us": round(percentiles[94] * 1e6, 1),
        "p99_us": round(percentiles[98] * 1e6, 1),
        "snapshot_bytes": run.snapshot_bytes,
        "steps": len(samples.every),
        "retrieving_steps": len(samples.asking),
        "retrieving_p50_us": round(median(samples.asking) * 1e6, 1) if samples.asking else None,
        "p50_in_yardsticks": round(p50 / yardstick, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--steps", type=int, default=300, help="measured steps at each point (default 300)")
    parser.add_argument("--mode", choices=("plain", "patterns"), help="only this one")
    given = parser.parse_args()
    if not given.json:
        print(f"begin_step + end_step, {THOUGHT_WORDS}-word thoughts, {given.steps} steps at each point\n")
        print("".join(f"{name:>{width}}" for name, width in COLUMNS.items()))
    for mode in [given.mode] if given.mode else ["plain", "patterns"]:
        for row in measure(mode, given.steps):
            print(json.dumps(row) if given.json else table_row(row), flush=True)


def table_row(row: dict[str, object]) -> str:
    shown = (
        *(row[name] for name in ("mode", "at", "p50_us", "p95_us", "p99_us")),
        f"x {row['p50_in_yardsticks']}",
        row["snapshot_bytes"],
        f"{row['retrieving_p50_us']} ({row['retrieving_steps']})",
    )
    return "".join(f"{value!s:>{width}}" for value, width in zip(shown, COLUMNS.values()))


if __name__ == "__main__":
    main()
