"""Random runs, decided by the engine and by a plain restatement of the contract: never a difference."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from reasonblocks.exceptions import Unavailable
from reasonblocks.requests import Retrieve
from reasonblocks.session import SteeringSession
from reasonblocks.types import (
    ETrace,
    Evaluation,
    FSMState,
    Step,
    StepDecision,
    StepInput,
    StepLogEntry,
    StepOutcome,
    Usage,
)
from tests.core.simulator import Answer, Asked, Expected, Judged, Knobs, Simulator
from tests.core.world import (
    ScriptedEvaluator,
    ScriptedReasonBlocks,
    ScriptedStore,
    begin,
    called,
    client,
    final,
    found,
    pattern,
    run,
    speaks,
    step,
)
from tests.whole import WHOLE

DIFFICULTIES = (0.0, 0.1, 0.19, 0.2, 0.3, 0.31, 0.4, 0.49, 0.5, 0.6, 0.61, 0.7, 0.85, 0.86, 0.9, 1.0)
TEXTS = ("Alpha one. Beta two.", "Alpha  one.\nBeta two. ", "Gamma three. Delta.", "Epsilon.", "Zeta six. Eta.")
PATTERNS = (
    pattern("e1-a"),
    pattern("e1-b", gate_threshold=0.65),
    pattern("e1-foreign", org_id="another"),
    pattern("e1-shared", org_id=None),
    pattern("e2-a"),
    pattern("e2-b", gate_threshold=0.9),
    pattern("e2-c", gate_threshold=0.6),
    pattern("e2-d", org_id="default"),
    pattern("e2-repeat", kinds=("repeat", "stale")),
    pattern("e2-stale", kinds=("stale",), gate_threshold=0.6),
    pattern("e2-foreign", org_id="another"),
    pattern("e3-a"),
    pattern("e3-b"),
)
SIMILARITIES = (0.6, 0.65, 0.69, 0.7, 0.79, 0.8, 0.9, 1.0)


def evaluation(dice: Random) -> Evaluation | None:
    if dice.random() < 0.15:
        return None
    inject = dice.random() < 0.5
    served = inject and dice.random() < 0.2
    return Evaluation(
        inject=inject,
        intervention_text=dice.choice(TEXTS) if inject else None,
        fired=dice.choice(((), (), ("semantic_loop",), ("semantic_loop", "cyclic_compression"))),
        scores={"semantic_loop": 0.7, "cyclic_compression": 0.2},
        composite=dice.choice((0.0, 0.15, 0.16, 0.6)),
        failure_type=dice.choice((None, "loop", "churn")),
        kind=dice.choice((None, "repeat", "stale", "of-next-year")),
        intervention_source="e2" if served else "monitor",
        pattern_id=dice.choice(("e2-a", "e2-served")) if served else None,
    )


def judgements(dice: Random, count: int) -> list[Judged]:
    """Difficulties come in stretches, as windows want them; some scorers raise."""
    judged: list[Judged] = []
    while len(judged) < count:
        low, high = dice.choice(((0.0, 0.2), (0.0, 1.0), (0.5, 1.0), (0.85, 1.0)))
        band = [one for one in DIFFICULTIES if low <= one <= high]
        for _ in range(dice.randint(1, 5)):
            difficulty = None if dice.random() < 0.05 else dice.choice(band)
            judged.append(Judged(difficulty, evaluation(dice)))
    return judged[:count]


def traces(dice: Random, *tiers: str) -> Answer:
    if dice.random() < 0.2:
        return None
    pool = [one for one in PATTERNS if one.tier in tiers]
    chosen = dice.sample(pool, dice.randint(0, min(3, len(pool))))
    return tuple(ETrace(pattern=one, similarity=dice.choice(SIMILARITIES)) for one in chosen)


def script(dice: Random) -> dict[str, Answer]:
    """What the store says of each tier at one call."""
    return {
        "e1": traces(dice, "e1", "e2"),
        "e2": traces(dice, "e2"),
        "e3": traces(dice, "e3"),
        "lesson": traces(dice, "e2"),
    }


def knobs(dice: Random) -> Knobs:
    return Knobs(
        e_traces_enabled=dice.random() < 0.85,
        e2_requires_signal=dice.random() < 0.5,
        end_at=1.0 if dice.random() < 0.15 else None,
        routed=dice.choice(((), ("SLOW", "SKIP"), ("FAST", "NORMAL"))),
    )


@dataclass
class Store:
    """Answers what the script says for the call that is being decided."""

    scripts: Sequence[Mapping[str, Answer]]
    call: int = 0
    asked: list[Asked] = field(default_factory=list)

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        numbers = tuple(int(one) for one in re.findall(r"thought-(\d+)-", request.query))
        asked = Asked(request.tier, request.top_k, request.similarity, request.failure_type, numbers)
        self.asked.append(asked)
        answer = self.scripts[self.call]["lesson" if (request.tier, request.top_k) == ("e2", 1) else request.tier]
        if answer is None:
            raise Unavailable("the scripted store", "it is down")
        return tuple(answer)


def scorer_of(judged: Sequence[Judged]) -> Any:
    def scorer(completed: Step) -> float:
        difficulty = judged[int(completed.tool_calls[0].id[1:])].difficulty
        if difficulty is None:
            raise RuntimeError("the scorer raises")
        return difficulty

    return scorer


def steered(
    knobs: Knobs, judged: Sequence[Judged], evaluator: ScriptedEvaluator, store: Store, **options: Any
) -> ScriptedReasonBlocks:
    def to_end(state: FSMState, history: tuple[float, ...]) -> FSMState:
        return FSMState.END if history[-1] == knobs.end_at else FSMState.NORMAL

    windows = {name: getattr(knobs, name) for name in ("fast_window", "slow_window", "skip_window")}
    machine: dict[str, Any] = {"transition": to_end} if knobs.end_at is not None else {"fsm_thresholds": windows}
    return ScriptedReasonBlocks(
        evaluator=evaluator,
        scorer=scorer_of(judged),
        pattern_store=store,
        model_routing={state: f"model-{state}" for state in knobs.routed},
        e_traces_enabled=knobs.e_traces_enabled,
        e2_requires_signal=knobs.e2_requires_signal,
        strict=False,
        step_deadline_ms=20_000,
        **machine,
        **options,
    )


def seen(entry: StepLogEntry, decision: StepDecision | None, asked: list[Asked], down: bool) -> Expected:
    """What the engine decided, in the simulator's words."""
    texts = [text for text, source in zip(entry.intervention_texts, entry.injection_sources) if source[0] == "M"]
    return Expected(
        state=entry.fsm_state,
        difficulty=entry.difficulty,
        composite=entry.composite,
        fired=entry.monitors_fired,
        failure_type=entry.failure_type,
        gate=entry.gate_decision,
        skipped=entry.skipped_reason,
        sources=list(entry.injection_sources),
        monitor_text=texts[0] if texts else None,
        pattern_ids=[id for one in decision.injections for id in one.pattern_ids] if decision else [],
        route=entry.route,
        asked=asked,
        down=down,
    )


def plain(expected: Expected) -> Expected:
    """White space aside, as the sanitiser may trim a text."""
    if expected.monitor_text is not None:
        expected.monitor_text = " ".join(expected.monitor_text.split())
    return expected


def differs(
    knobs: Knobs, judged: list[Judged], scripts: list[dict[str, Answer]], planning: Random | None = None
) -> list[str]:
    """Return where engine and simulator differ, field by field; `planning` makes auxiliary calls, too."""
    evaluator, store, simulator = (
        ScriptedEvaluator([one.evaluation for one in judged]),
        Store(scripts),
        Simulator(knobs),
    )
    session: SteeringSession = steered(knobs, judged, evaluator, store).session(task="a task")
    pairs = []
    for number in range(len(judged)):
        store.call, store.asked = number, []
        _plan(session, planning)
        decision = begin(session, number)
        session.end_step(decision, called(number))
        expected = (
            simulator.next(number, judged[number - 1], scripts[number]) if number else simulator.first(scripts[0])
        )
        pairs.append((seen(session.step_log[-1], decision, store.asked, expected.down), expected))
    store.asked = []
    _plan(session, planning)
    session.finish(completed=step(len(judged) - 1))
    pairs.append((seen(final(session), None, store.asked, False), simulator.final(len(judged), judged[-1])))
    return [
        f"call {number}: {name} is {value!r}, the contract says {wanted!r}"
        for number, (one, other) in enumerate(pairs)
        for (name, value), wanted in zip(vars(plain(one)).items(), vars(plain(other)).values())
        if value != wanted
    ]


def _plan(session: SteeringSession, planning: Random | None) -> None:
    for _ in range(planning.choice((0, 0, 1, 1, 4)) if planning else 0):
        decision = session.begin_step(StepInput(auxiliary=True))
        session.end_step(decision, StepOutcome(text="thought-99- is a plan", usage=Usage(input=900, output=90)))


@pytest.mark.parametrize("hundred", range(4))
def test_random_runs_are_decided_as_the_contract_says(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        dice = Random(seed)
        calls = dice.randint(1, 24)
        judged, scripts = judgements(dice, calls), [script(dice) for _ in range(calls)]
        assert differs(knobs(dice), judged, scripts) == [], f"seed {seed}"


def test_random_runs_with_auxiliary_calls_anywhere_are_decided_as_if_these_had_not_been() -> None:
    for seed in range(150 if WHOLE else 50):
        dice = Random(seed)
        calls = dice.randint(1, 24)
        judged, scripts = judgements(dice, calls), [script(dice) for _ in range(calls)]
        assert differs(knobs(dice), judged, scripts, planning=dice) == [], f"seed {seed}"


def test_random_runs_reach_every_state_gate_decision_and_skipped_reason() -> None:
    reached: set[str | None] = set()
    for seed in range(100 if WHOLE else 40):
        dice = Random(seed)
        simulator, judged = Simulator(knobs(dice)), judgements(dice, 24)
        for number in range(1, 24):
            call = simulator.next(number, judged[number - 1], script(dice))
            reached |= {call.state, call.gate, call.skipped}
    wanted = {"FAST", "NORMAL", "SLOW", "SKIP", "END", "unavailable", "quiet", "cap", "cooldown", "duplicate", "inject"}
    assert wanted | {"end", "fault", "disabled", "fast", None} <= reached


def test_runs_that_always_want_to_inject_are_decided_as_the_contract_says() -> None:
    for seed in range(60):
        dice = Random(seed)
        scores = [dice.choice([0.1, 0.7, 0.9, 0.5, 0.4]) for _ in range(30)]
        judged = [Judged(score, speaks(f"Text {at}. Advice.", failure_type="loop")) for at, score in enumerate(scores)]
        scripts: list[dict[str, Answer]] = [{"e1": (), "e2": (), "e3": None, "lesson": ()} for _ in scores]
        assert differs(knobs(dice), judged, scripts) == [], f"seed {seed}"


# ------------------------------------------------------------ single rules, by hand


def test_in_normal_ever_new_texts_are_injected_at_calls_1_4_7_10_and_13_then_never() -> None:
    rb = client(*[speaks(f"Text {at}. Advice.") for at in range(30)], scorer=lambda completed: 0.4)
    decisions = run(rb.session(), 30)
    assert [one.step for one in decisions if one.gate_decision == "inject"] == [1, 4, 7, 10, 13]


def test_the_evaluator_is_asked_with_every_injection_of_the_run_so_far() -> None:
    evaluator = ScriptedEvaluator([speaks(f"Text {at}.") for at in range(6)])
    rb = ScriptedReasonBlocks(evaluator=evaluator, scorer=lambda completed: 0.4, strict=True, step_deadline_ms=20_000)
    run(rb.session(), 6)
    assert [request.index for request in evaluator.asked] == [0, 1, 2, 3, 4], "not before the first call"
    assert [[one.step for one in request.injected] for request in evaluator.asked] == [[], [1], [1], [1], [1, 4]]


@pytest.mark.parametrize(
    ("tier", "calls", "steps"), [("e1", 3, [0, 1]), ("e1", 6, [2, 3, 4]), ("e2", 3, [0, 1]), ("e2", 9, [3, 4, 5, 6, 7])]
)
def test_a_query_holds_the_last_3_or_5_completed_steps_or_all_there_are(
    tier: str, calls: int, steps: list[int]
) -> None:
    assert texts_of_query(tier, calls) == steps


def texts_of_query(tier: str, calls: int) -> list[int]:
    """The steps in the query of a tier's first request, which comes before the last call (a signal opens it)."""
    quiet = Evaluation(scores={"semantic_loop": 0.0})
    loud = Evaluation(scores={"semantic_loop": 0.5}, composite=0.5)
    store = ScriptedStore(lambda request: ())
    rb = ScriptedReasonBlocks(
        evaluator=ScriptedEvaluator([*[quiet] * (calls - 2), loud]),
        scorer=lambda completed: 0.4,
        pattern_store=store,
        e2_requires_signal=True,
        strict=True,
        step_deadline_ms=20_000,
    )
    run(rb.session(), calls)
    query = next(request.query for request in store.asked if request.tier == tier)
    return [int(one) for one in re.findall(r"thought-(\d+)-", query)]


def test_fast_asks_the_store_nothing() -> None:
    store = ScriptedStore(lambda request: ())
    evaluation = speaks("Text.", failure_type="loop")
    rb = client(
        *[evaluation] * 12, scorer=lambda completed: 0.1, pattern_store=store, fsm_thresholds={"fast_window": 1}
    )
    session = rb.session()
    run(session, 2)
    before = len(store.asked)
    run(session, 12, start=2)
    assert (session.step_log[-1].fsm_state, len(store.asked)) == ("FAST", before)


def test_standing_rules_for_the_run_are_asked_once_and_in_the_base_block_of_every_call() -> None:
    store = ScriptedStore(lambda request: found("e3-a", "e3-b") if request.tier == "e3" else ())
    decisions = run(client(pattern_store=store, standing_rules="run").session(), 3)
    assert [(one.guidance, "e3-a always holds" in one.standing_rules) for one in decisions] == [("", True)] * 3
    assert [request.tier for request in store.asked].count("e3") == 1


def test_an_injection_lives_for_one_call() -> None:
    rb = client(store=lambda request: found("e3-a") if request.tier == "e3" else ())
    assert [bool(one.guidance) for one in run(rb.session(), 3)] == [True, False, False]


def test_org_of_the_run_goes_before_that_of_the_client_when_the_store_is_asked() -> None:
    store = ScriptedStore(lambda request: ())
    run(client(pattern_store=store, org_id="client-org").session(org_id="run-org"), 1)
    assert [request.org_id for request in store.asked] == ["run-org"]


def test_equal_steps_settings_and_answers_give_equal_decisions() -> None:
    def decisions() -> list[StepDecision]:
        rb = client(
            *[speaks(f"Text {at}.", failure_type="loop") for at in range(8)], store=lambda request: found("e2-a")
        )
        return run(rb.session(run_id="same"), 9)

    assert decisions() == decisions()
