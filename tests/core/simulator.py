"""Sections 2, 4 and 5 of the behaviour contract, stated once more and plainly: what one run has to decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from reasonblocks.types import ETrace, Evaluation

Answer = Sequence[ETrace] | None
"""What the store answers; None is down."""
TOLD_TYPES = {"repeat": "loop", "stale": "churn"}
"""The failure types of the kinds of findings that the tests use."""
COOLDOWNS = {"FAST": 5, "NORMAL": 3, "SLOW": 2, "SKIP": 2}


@dataclass(frozen=True)
class Judged:
    """How a completed step is judged. No difficulty: the scorer raises. No evaluation: unavailable."""

    difficulty: float | None
    evaluation: Evaluation | None


@dataclass(frozen=True)
class Knobs:
    """The settings that the rules of these sections speak of."""

    fast_window: int = 2
    slow_window: int = 2
    skip_window: int = 3
    e_traces_enabled: bool = True
    e2_requires_signal: bool = False
    end_at: float | None = None
    routed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """One request to the store. `texts`: numbers of the completed steps that the query is made of."""

    tier: str
    top_k: int
    similarity: float
    failure_type: str | None
    texts: tuple[int, ...]


@dataclass
class Expected:
    """What the log has to say of a call, and what was asked for it."""

    state: str
    difficulty: float | None = None
    composite: float | None = None
    fired: tuple[str, ...] = ()
    failure_type: str | None = None
    gate: str | None = None
    skipped: str | None = None
    sources: list[str] = field(default_factory=list)
    monitor_text: str | None = None
    pattern_ids: list[str] = field(default_factory=list)
    route: str | None = None
    asked: list[Asked] = field(default_factory=list)
    down: bool = False


class Simulator:
    """One run. `answers` maps a tier, and `lesson` for the E2 of a monitor's injection, to what the store says."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs = knobs
        self.state = "INIT"
        self.history: list[float] = []
        self.scored: list[int] = []
        self.fired: list[bool] = []
        self.ever_evaluated = False
        self.injected_at: list[int] = []
        self.last_text: str | None = None
        self.types: set[str] = set()
        self.shown: set[str] = set()
        self.wait = {"e1": 0, "e2": 0}
        self.used: set[str] = set()
        self.e3_retries = 0

    def first(self, answers: Mapping[str, Answer]) -> Expected:
        call = Expected("INIT")
        if not self.knobs.e_traces_enabled:
            call.skipped = "disabled"
            return call
        self._ask_e3(call, answers)
        call.skipped = "unavailable" if call.down else None
        return call

    def next(self, number: int, judged: Judged, answers: Mapping[str, Answer]) -> Expected:
        call = self._judge(number, judged)
        if call.skipped in ("fault", "end"):
            self.fired.append(False)
            return call
        self._speak(call, number, judged.evaluation, answers)
        if self.knobs.e_traces_enabled and call.state != "FAST":
            self._learn(call, number, judged.evaluation, answers)
        self.fired.append(bool(call.fired))
        self.ever_evaluated = self.ever_evaluated or judged.evaluation is not None
        call.route = call.state if call.state in self.knobs.routed else None
        call.skipped = self._skipped(call, judged.evaluation)
        return call

    def final(self, number: int, judged: Judged) -> Expected:
        call = self._judge(number, judged)
        call.gate = "final"
        if call.skipped is None:
            call.skipped = self._skipped(call, judged.evaluation)
        return call

    # ------------------------------------------------------------ sections 2 and 3

    def _judge(self, number: int, judged: Judged) -> Expected:
        if judged.difficulty is None:
            return Expected(self.state, skipped="fault")
        self.history.append(judged.difficulty)
        self.scored.append(number - 1)
        self.state = self._advanced()
        call = Expected(self.state, difficulty=judged.difficulty)
        if self.state == "END":
            call.skipped = "end"
            return call
        evaluation = judged.evaluation
        if evaluation is not None:
            call.composite, call.fired = evaluation.composite, evaluation.fired
            call.failure_type = evaluation.failure_type
        return call

    def _advanced(self) -> str:
        if self.state == "END" or self.history[-1] == self.knobs.end_at:
            return "END"
        if self.knobs.end_at is not None:
            return "NORMAL"
        scores = [Decimal(str(score)) for score in self.history]

        def all_last(window: int, low: str, high: str) -> bool:
            return len(scores) >= window and all(Decimal(low) < score < Decimal(high) for score in scores[-window:])

        if self.state == "INIT":
            return "NORMAL"
        if self.state == "NORMAL":
            if all_last(self.knobs.fast_window, "-1", "0.2"):
                return "FAST"
            return "SLOW" if all_last(self.knobs.slow_window, "0.6", "2") else "NORMAL"
        if self.state == "FAST":
            return "NORMAL" if scores[-1] > Decimal("0.3") else "FAST"
        if scores[-1] < Decimal("0.5"):
            return "NORMAL"
        if self.state == "SLOW" and all_last(self.knobs.skip_window, "0.85", "2"):
            return "SKIP"
        return self.state

    # ------------------------------------------------------------ section 4

    def _speak(self, call: Expected, number: int, evaluation: Evaluation | None, answers: Mapping[str, Answer]) -> None:
        call.gate = self._gate_before_text(call.state, number, evaluation)
        if call.gate is not None or evaluation is None or evaluation.intervention_text is None:
            return
        text, ids = evaluation.intervention_text, [evaluation.pattern_id] if evaluation.pattern_id else []
        kind = TOLD_TYPES.get(evaluation.kind or "", evaluation.failure_type)
        if (
            self.knobs.e_traces_enabled
            and call.state != "FAST"
            and evaluation.intervention_source != "e2"
            and kind is not None
            and kind not in self.types
        ):
            lessons = self._ask(call, "e2", "lesson", 1, 0.7, kind, 5, answers, evaluation)
            if lessons:
                sentence = " ".join(text.split()).split(". ")[0].rstrip(".") + "."
                text = f"{sentence} {lessons[0].pattern.fields['intervention']}"
                ids = [lessons[0].pattern.id]
        if self.last_text is not None and " ".join(text.split()) == " ".join(self.last_text.split()):
            call.gate = "duplicate"
            return
        call.gate, call.monitor_text, self.last_text = "inject", text, text
        call.sources.append("MonitorSteeringInjection")
        self.injected_at.append(number)
        if kind is not None:
            self.types.add(kind)
        self._show(call, ids)

    def _gate_before_text(self, state: str, number: int, evaluation: Evaluation | None) -> str | None:
        if evaluation is None:
            return "unavailable"
        if not evaluation.inject:
            return "quiet"
        if len(self.injected_at) >= 5:
            return "cap"
        if self.injected_at and number - self.injected_at[-1] < COOLDOWNS[state]:
            return "cooldown"
        return None

    # ------------------------------------------------------------ section 5

    def _learn(self, call: Expected, number: int, evaluation: Evaluation | None, answers: Mapping[str, Answer]) -> None:
        signal = evaluation is not None and evaluation.composite > 0.15
        kind = evaluation.failure_type if evaluation and evaluation.inject else None
        typed = evaluation is not None and evaluation.failure_type is not None
        never = evaluation is None and not self.ever_evaluated
        if self._may("e1", number) and (call.fired or signal or any(self.fired[-2:]) or never):
            self._tier(call, "e1", 1, 0.8, None, 3, number, answers, None)
        needs = signal or typed or call.state in ("SLOW", "SKIP")
        if self._may("e2", number) and (needs or not self.knobs.e2_requires_signal):
            self._tier(call, "e2", 2, 0.7, kind, 5, number, answers, evaluation)
        if "e3" not in self.used and self.e3_retries < 3:
            self.e3_retries += 1
            self._ask_e3(call, answers)

    def _may(self, tier: str, number: int) -> bool:
        return tier not in self.used and number >= self.wait[tier]

    def _tier(
        self,
        call: Expected,
        tier: str,
        top_k: int,
        similarity: float,
        kind: str | None,
        steps: int,
        number: int,
        answers: Mapping[str, Answer],
        evaluation: Evaluation | None,
    ) -> None:
        traces = self._ask(call, tier, tier, top_k, similarity, kind, steps, answers, evaluation)
        if not traces:
            self.wait[tier] = number + 3
            return
        self.used.add(tier)
        call.sources += [f"{tier.upper()}Injection"] * len(traces)
        self._show(call, [trace.pattern.id for trace in traces])

    def _ask_e3(self, call: Expected, answers: Mapping[str, Answer]) -> None:
        call.asked.append(Asked("e3", 32, 0.0, None, ()))
        answer = answers.get("e3", ())
        if answer is None:
            call.down = True
            return
        self.used.add("e3")
        rules = [trace for trace in answer if trace.pattern.tier == "e3"]
        if rules:
            call.sources.append("E3Injection")
            self._show(call, [trace.pattern.id for trace in rules])

    def _ask(
        self,
        call: Expected,
        tier: str,
        key: str,
        top_k: int,
        similarity: float,
        kind: str | None,
        steps: int,
        answers: Mapping[str, Answer],
        evaluation: Evaluation | None,
    ) -> list[ETrace]:
        """What counts of an answer: of the tier and org, near enough, not shown yet; best first, ties by id.

        A lesson for kinds of findings is only for these, if a finding is told or its kind is known.
        """
        finding = evaluation is not None and (evaluation.inject or evaluation.kind is not None)
        call.asked.append(Asked(tier, top_k, similarity, kind, tuple(self.scored[-steps:])))
        answer = answers.get(key, ())
        if answer is None:
            call.down = True
            return []
        orgs = ("default",) if tier == "e1" else ("default", None)
        usable = [
            trace
            for trace in answer
            if trace.pattern.tier == tier
            and trace.pattern.org_id in orgs
            and trace.pattern.id not in self.shown
            and not (finding and trace.pattern.kinds and evaluation and evaluation.kind not in trace.pattern.kinds)
            and trace.similarity
            >= (similarity if trace.pattern.gate_threshold is None else trace.pattern.gate_threshold)
        ]
        return sorted(usable, key=lambda trace: (-trace.similarity, trace.pattern.id))[:top_k]

    def _show(self, call: Expected, ids: Sequence[str]) -> None:
        call.pattern_ids += ids
        self.shown.update(ids)

    def _skipped(self, call: Expected, evaluation: Evaluation | None) -> str | None:
        if not self.knobs.e_traces_enabled:
            return "disabled"
        if call.state == "FAST":
            return "fast"
        return "unavailable" if evaluation is None or call.down else None
