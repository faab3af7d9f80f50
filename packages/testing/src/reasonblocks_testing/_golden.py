"""Golden runs: files with the decision for each call of a scripted run, which every adapter has to reproduce."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from reasonblocks.exceptions import ConfigError, Unavailable
from reasonblocks.requests import Evaluate, Retrieve
from reasonblocks.types import Budget, Escalate, ETrace, Evaluation, FSMState, Memories, Pattern, StepLogEntry, Usage

from ._loop import LoopHarness
from ._parity import LIVE_ONLY, Entry, ParityRun, Runner, parity_lines, run_differences, without_errors
from ._scripted import ScriptedEvaluator, ScriptedReasonBlocks, ScriptedStore, scripted_scorer
from .harness import Harness
from .script import Script, Turn, tool_call, tool_result

Line = Mapping[str, Any]
DIRECT = (
    "step", "fsm_state", "difficulty", "composite", "monitors_fired", "failure_type", "gate_decision",
    "skipped_reason", "injection_sources", "route", "model_id", "tokens",
)  # fmt: skip
"""Keys of `expect` that have the same name in the step log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """One golden run: the header, a line for each model call, and the expected final entry.

    tests/golden/README.md describes the format.
    """

    name: str
    header: Line
    calls: tuple[Line, ...]
    final: Line

    @property
    def resumes(self) -> tuple[int, ...]:
        """The calls before which the run pauses and resumes in another process."""
        return tuple(line["call"] for line in self.calls if line.get("resume"))

    @property
    def script(self) -> Script:
        """The script of the model and its tools."""
        turns = tuple(_turn(line) for line in self.calls)
        return Script(turns=turns, task=self.header["task"], model=self.header["model"], run_id=self.name)

    def client(self, world: World, **options: Any) -> ScriptedReasonBlocks:
        """Return a client with this run's settings, scorer, evaluator and store; `options` take precedence."""
        settings = dict(self.header["settings"])
        if "custom_transition" in self.header:
            settings["transition"] = partial(_transition, self.header["custom_transition"])
        if "budget" in settings:
            settings["budget"] = Budget(**settings["budget"])
        if "escalate" in settings:
            settings["escalate"] = Escalate(**settings["escalate"])
        return ScriptedReasonBlocks(
            evaluator=world.evaluator,
            scorer=world.scorer,
            pattern_store=world.store,
            **{"strict": True, **settings, **options},
        )

    def differences(
        self, entries: Sequence[StepLogEntry], final: StepLogEntry | None, asked: World, *, told_once: bool = False
    ) -> list[str]:
        """Return a text for each field that differs from the file; empty if the run is as written.

        `asked` is the world that answered in the run. With `told_once=True` an injected text is not expected again,
        because the framework keeps guidance in its history.
        """
        found = [f"{len(entries)} entries for {len(self.calls)} calls"] if len(entries) != len(self.calls) else []
        sent: set[str] = set()
        for line, entry in zip(self.calls, entries, strict=False):
            where = f"call {line['call']}"
            expected = _without(line["expect"], sent) if told_once else line["expect"]
            sent.update(line["expect"].get("intervention_texts", ()))
            found += [f"{where}: {text}" for text in _entry_differences(expected, entry)]
            if asked.asked_at(line["call"]) != line["expect"]["asked"]:
                found.append(f"{where}: asked {asked.asked_at(line['call'])}, not {line['expect']['asked']}")
        if final is None:
            return [*found, "no final entry"]
        return found + [f"final: {text}" for text in _entry_differences(self.final, final)]


def _without(expected: Mapping[str, Any], sent: Collection[str]) -> dict[str, Any]:
    """Return the expectation of a call without texts that were sent before, and without their sources."""
    if "intervention_texts" not in expected:
        return dict(expected)
    pairs = zip(expected["injection_sources"], expected["intervention_texts"], strict=True)
    fresh = [(source, text) for source, text in pairs if text not in sent]
    sources, texts = [source for source, _ in fresh], [text for _, text in fresh]
    return {**expected, "injection_sources": sources, "intervention_texts": texts, "intervention_texts_contain": ()}


class World:
    """Scripted scorer, evaluator and store of one golden run. Use a new one for each run.

    A store request does not hold the number of its call, so calls are counted by the requests to the evaluator.
    """

    def __init__(self, golden: Golden) -> None:
        self._golden = golden
        self._patterns = {given["id"]: _pattern(given) for given in golden.header.get("patterns", ())}
        self._call = 0
        self._asked: dict[int, set[str]] = {}
        self.scorer = scripted_scorer({_first_call(line): _difficulty(line) for line in golden.calls})
        self.evaluator = _Counting(self, [_evaluation(line["judged"]["evaluation"]) for line in golden.calls])
        self.store = ScriptedStore(self._search)

    def asked_at(self, call: int) -> list[str]:
        """Return the keys of `store` that were requested before a call, sorted, each once."""
        return sorted(self._asked.get(call, ()))

    def judging(self, index: int) -> None:
        """Record that completed step `index` is evaluated: the next call begins."""
        self._call = index + 1

    def _search(self, request: Retrieve) -> list[ETrace]:
        key = "e2_for_injection" if request.tier == "e2" and request.top_k == 1 else request.tier
        self._asked.setdefault(self._call, set()).add(key)
        answer = self._golden.calls[self._call]["store"].get(key, ())
        if answer == "down":
            raise Unavailable("the scripted store", f"call {self._call} says so")
        return [ETrace(pattern=self._patterns[hit["id"]], similarity=hit.get("similarity", 0.0)) for hit in answer]


class _Counting(ScriptedEvaluator):
    def __init__(self, world: World, evaluations: Sequence[Evaluation | None]) -> None:
        super().__init__(evaluations)
        self._world = world

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]:
        self._world.judging(request.index)
        return super().evaluate(request)


def load_golden(path: str | os.PathLike[str]) -> Golden:
    """Read a golden run from a file, for example `tests/golden/slow.jsonl`."""
    lines = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    return Golden(name=lines[0]["name"], header=lines[0], calls=tuple(lines[1:-1]), final=lines[-1]["final"])


def _entry_differences(expected: Line, entry: StepLogEntry) -> list[str]:
    log = entry.as_dict()
    found = [
        f"{key} is {log[key]!r}, not {expected[key]!r}"
        for key in DIRECT
        if key in expected and log[key] != expected[key]
    ]
    texts = entry.intervention_texts
    if "intervention_texts" in expected and list(texts) != expected["intervention_texts"]:
        found.append(f"intervention_texts is {list(texts)!r}, not {expected['intervention_texts']!r}")
    for text, part in zip(texts, expected.get("intervention_texts_contain", ()), strict=False):
        if part not in text:
            found.append(f"{part!r} is not in {text!r}")
    return found


def _turn(line: Line) -> Turn:
    turn = line["turn"]
    usage = line.get("usage", {})
    return Turn(
        text=turn.get("thought", ""),
        tool_calls=tuple(tool_call(**call) for call in turn.get("tool_calls", ())),
        results=tuple(tool_result(**result) for result in turn.get("results", ())),
        usage=Usage(**usage),
    )


def _first_call(line: Line) -> str:
    calls = line["turn"].get("tool_calls") or [{"id": ""}]
    first: str = calls[0]["id"]
    return first


def _difficulty(line: Line) -> float | Exception:
    given = line["judged"]["difficulty"]
    return RuntimeError("the script says that the scorer raises") if given == "raise" else float(given)


def _evaluation(given: Any) -> Evaluation | None:
    if given == "down":
        return None
    values: dict[str, Any] = {key: tuple(value) if key == "fired" else value for key, value in given.items()}
    return Evaluation(**values)


def _pattern(given: Line) -> Pattern:
    values: dict[str, Any] = {key: tuple(value) if key == "exemplars" else value for key, value in given.items()}
    return Pattern(**values)


def _transition(table: Mapping[str, str], state: FSMState, history: tuple[float, ...]) -> FSMState:
    return FSMState(table.get(repr(history[-1]), "NORMAL"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The comparison of one run in one mode. `declared` counts the differences in each declared field."""

    run: str
    mode: str
    entries: int
    differences: Sequence[str]
    declared: Mapping[str, int]


def against_core(harness: Harness, runs: Iterable[ParityRun], modes: Sequence[str]) -> Iterator[Compared]:
    """Compare each run in each mode with the hand-written loop, and yield each result as soon as it is known."""
    limits = limits_of(harness)
    for written in runs:
        run = written if harness.caps.tool_errors else without_errors(written)
        core, _ = _entries(LoopHarness(harness.caps), run, "sync")
        for mode in modes:
            theirs, faults = _entries(harness, run, mode)
            where = f"{run.name}, {mode}"
            wrong = run_differences(where, theirs, core, leave=limits)
            yield Compared(
                run=run.name,
                mode=mode,
                entries=len(core),
                differences=[*(f"{where}: {fault}" for fault in faults), *wrong],
                declared={
                    field: len(run_differences(where, theirs, core, leave=limits.keys() - {field})) - len(wrong)
                    for field in limits
                },
            )


def limits_of(harness: Harness) -> Mapping[str, str]:
    """Return the harness's `parity_limits`, if any: each field that its framework cannot report, with the reason.

    Raises `ConfigError` for a field that steering decides, and for a limit without a reason.
    """
    limits: Mapping[str, str] = getattr(harness, "parity_limits", {})
    for field, reason in limits.items():
        if field not in LIVE_ONLY and not field.startswith("completed."):
            rule = f"a decision is never a limit; {', '.join(LIVE_ONLY)} and fields that begin with completed. may be"
            raise ConfigError("parity_limits", field, rule)
        if not reason:
            raise ConfigError("parity_limits", field, "needs a reason: what the framework does instead")
    return limits


def _entries(harness: Runner, run: ParityRun, mode: str) -> tuple[list[Entry], list[str]]:
    """Return a run's entries after a round trip through JSON, and the faults of the run."""
    lines, faults = parity_lines(harness, run, mode)
    return json.loads(json.dumps(lines)), faults
