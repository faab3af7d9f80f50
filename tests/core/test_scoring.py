"""How hard a step was: bounded, pure, negation-aware, against the agent's own level."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.account.observe import observe
from reasonblocks.engine.fsm import DifficultyFSM
from reasonblocks.engine.scoring import LEVEL_STEPS, MAX_STALL, calm_of, parts_of, score, score_text
from reasonblocks.monitors.calibration import SHIPPED_LEVEL
from reasonblocks.types import (
    Account,
    DifficultyParts,
    FSMState,
    Level,
    ScoreMemory,
    Step,
    StepInput,
    StepOutcome,
    ToolCall,
    ToolResult,
)
from reasonblocks.types.account import Did
from tests.core.steps import acted
from tests.core.world import client, run

quick = settings(derandomize=True, deadline=None, database=None, max_examples=100)
FRESH = ScoreMemory()
NEW, DEAD = Did(), Did(letter="A")
CALL = ToolCall(id="c", name="run_tests", arguments={"path": "tests"})

told = st.sampled_from("error maybe no 0 failed forms.py the \n".split(" "))
texts = st.one_of(st.text(max_size=200), st.lists(told).map(" ".join))
results = st.builds(ToolResult, call_id=st.just("c"), output=texts, is_error=st.sampled_from([None, True, False]))
done = st.builds(Did, letter=st.sampled_from(["", "", "A", "B"]), failed=st.booleans())
memories = st.builds(
    ScoreMemory,
    count=st.integers(0, 99),
    total=st.floats(0, 1),
    recent=st.floats(0, 1),
    fresh=st.floats(0, 1),
    stall=st.floats(0, MAX_STALL),
)
steps = st.builds(
    Step, thought=texts, reasoning=texts, tool_calls=st.just((CALL,)), tool_results=results.map(lambda one: (one,))
)


def with_result(output: str, flag: bool | None, thought: str = "I run the tests now.") -> Step:
    return acted("run_tests", {"path": "tests"}, output, is_error=flag, thought=thought)


def doing(thought: str, output: str, flag: bool | None = False, command: str = "ls") -> Step:
    """One command and its result."""
    return acted("bash", {"command": command}, output, is_error=flag, thought=thought)


def easy(number: int) -> Step:
    return doing(
        "I read the next file.", f"module {chr(97 + number % 26) * 9} holds nothing odd", command=f"cat {number}"
    )


def hard(number: int) -> Step:
    return doing("Maybe that fails, I am unsure why the error comes.", "Error: permission denied", True, f"ls {number}")


def difficulties(trajectory: Sequence[Step]) -> list[float]:
    memory, account, found = FRESH, Account(), list[float]()
    for index, step in enumerate(trajectory):
        account = observe(step, account, index, {})
        value, _, memory = score(step, memory, SHIPPED_LEVEL, account.did, easy=0.35)
        found.append(value)
    return found


def states(trajectory: Sequence[Step]) -> list[FSMState]:
    machine, state, passed = DifficultyFSM(), FSMState.INIT, list[FSMState]()
    found = difficulties(trajectory)
    for count in range(1, len(found) + 1):
        state = machine.transition(state, found[:count])
        passed.append(state)
    return passed


def difficulty(step: Step) -> float:
    return score(step, FRESH, SHIPPED_LEVEL, NEW)[0]


@quick
@given(steps, memories, done, texts)
def test_a_difficulty_and_its_parts_are_in_0_to_1(step: Step, memory: ScoreMemory, did: Did, text: str) -> None:
    four = parts_of(step)
    values = (four.hedging, four.length, four.errors, four.entities, score_text(text, SHIPPED_LEVEL))
    assert all(0 <= one <= 1 for one in (score(step, memory, SHIPPED_LEVEL, did)[0], *values))


@quick
@given(steps, memories, done)
def test_scoring_is_pure(step: Step, memory: ScoreMemory, did: Did) -> None:
    assert score(step, memory, SHIPPED_LEVEL, did) == score(step, memory, SHIPPED_LEVEL, did)


@pytest.mark.parametrize("piece", ["x", "error ", "a.b/c_1 ", "数", "\n"])
def test_a_megabyte_is_scored_quickly(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    started = time.perf_counter()
    difficulty(with_result(text, None, thought=text))
    assert time.perf_counter() - started < 0.25


def test_only_the_first_and_last_8000_characters_count() -> None:
    edge = "plain words here " * 1_000
    loud, quiet = (Step(thought=edge + middle * 5_000 + edge) for middle in ("error maybe ", "quiet now "))
    assert difficulty(loud) == difficulty(quiet)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        *[(text, True) for text in ("an error", "3 errors", "it failed", "Traceback", "ERROR", "an exception")],
        *[(text, False) for text in ("0 errors", "no exception", "no errors found", "without error", "errors: 0")],
        *[(text, False) for text in ("zero failures", "it terrors me", "errorless", "a failsafe")],
    ],
)
def test_errors_are_counted_by_words_unless_they_are_negated(text: str, counts: bool) -> None:
    assert (parts_of(Step(thought=text)).errors > 0) is counts


@pytest.mark.parametrize(("text", "counts"), [("it could be", True), ("it couldn't", False), ("it couldn’t", False)])
def test_a_hedge_counts_and_a_contraction_is_one_word(text: str, counts: bool) -> None:
    assert (parts_of(Step(thought=text)).hedging > 0) is counts


@pytest.mark.parametrize(
    ("output", "flag", "counts"),
    [("error failed exception", False, False), ("fine", True, True), ("error: it failed", None, True)],
)
def test_a_flag_goes_before_the_words_of_an_observation(output: str, flag: bool | None, counts: bool) -> None:
    assert (parts_of(with_result(output, flag)).errors > 0) is counts


@pytest.mark.parametrize("output", ["fine", "error failed", "0 errors"])
def test_the_flag_alone_decides_what_an_observation_adds(output: str) -> None:
    assert parts_of(with_result(output, True)).errors == parts_of(with_result("anything", True)).errors


@pytest.mark.parametrize(
    ("thought", "reasoning", "scored"),
    [("said", "thought", "said"), ("", "thought", "thought"), (" \n", "thought", "thought")],
)
def test_the_scored_text_is_the_visible_text_else_the_reasoning(thought: str, reasoning: str, scored: str) -> None:
    assert Step(thought=thought, reasoning=reasoning).scored_text == scored


def test_the_scored_text_of_a_silent_step_is_its_calls_and_what_came_back() -> None:
    assert with_result("3 failed", None, thought="").scored_text == 'run_tests\n{"path":"tests"}\n3 failed'


def test_a_step_with_nothing_at_all_is_scored() -> None:
    assert 0 <= difficulty(Step()) <= 1


def levels(count: int) -> list[float]:
    """What is known of the agent's own level after each step."""
    memory, seen = FRESH, [FRESH.total]
    for number in range(count):
        memory = score(Step(thought=f"maybe error {number} " * (number + 1)), memory, SHIPPED_LEVEL, NEW)[2]
        seen.append(memory.total)
    return seen


def test_the_own_level_is_shaped_by_each_of_the_first_8_steps_and_fixed_then() -> None:
    seen = levels(30)
    assert len(set(seen[:9])) == 9 == LEVEL_STEPS + 1
    assert len(set(seen[8:])) == 1


def test_errors_do_not_shape_the_own_level() -> None:
    fine, failed = doing("I look.", "some output", False), doing("I look.", "some output", True)
    assert score(fine, FRESH, SHIPPED_LEVEL, NEW)[2].total == score(failed, FRESH, SHIPPED_LEVEL, NEW)[2].total


def test_trouble_that_stays_is_not_learned_as_normal() -> None:
    trouble = difficulties([*map(easy, range(8)), *map(hard, range(60))])[13:]
    assert min(trouble) > 0.85


def decayed(values: Sequence[float], count: int) -> float:
    """The mean of the first value, the prior, and the `count` after it; each weighs 3/4 of the next."""
    weights = [0.75 ** (count - at) for at in range(count + 1)]
    return math.fsum(map(lambda weight, value: weight * value, weights, values)) / math.fsum(weights)


@quick
@given(st.lists(st.tuples(steps, done), min_size=1, max_size=30))
def test_the_difficulty_is_that_of_the_modules_docstring(trajectory: list[tuple[Step, Did]]) -> None:
    """An independent statement, over whole runs instead of step by step."""
    memory, found, four = FRESH, list[float](), list[DifficultyParts]()
    for step, did in trajectory:
        value, its, memory = score(step, memory, SHIPPED_LEVEL, did, easy=0.35)
        found.append(value)
        four.append(its)
    raw = [0.19 + 0.07, *(0.05 * p.hedging + 0.5 * p.length + 0.25 * p.errors + 0.1 * p.entities for p in four)]
    fresh, stall = [0.5, *(0.0 if did.dead else 0.6 for _, did in trajectory)], 0.0
    for count, (_, did) in enumerate(trajectory, start=1):
        first = [calm_of(its) for its in four[: min(8, count - 1)]]
        own = (6 * raw[0] + math.fsum(first)) / (6 + len(first)) + 0.14 * max(0.0, 1 - 12 / count)
        stall = min(8, stall + 1) if did.dead else stall / 2
        z = 1.25 * (decayed(raw, count) - own) / 0.034 + 0.4 - 8 * (decayed(fresh, count) - 0.5)
        expected = 1 - 0.65**stall / (1 + math.exp(z))
        expected = max(expected, 0.35) if did.dead or did.failed else expected
        assert found[count - 1] == pytest.approx(expected, abs=1e-4)


@quick
@given(steps, memories, done)
def test_a_step_is_never_easier_because_it_was_dead(step: Step, memory: ScoreMemory, did: Did) -> None:
    assert score(step, memory, SHIPPED_LEVEL, DEAD)[0] >= score(step, memory, SHIPPED_LEVEL, did)[0]


@quick
@given(steps, memories, done, st.floats(0, MAX_STALL))
def test_a_step_is_never_easier_after_a_longer_stall(step: Step, memory: ScoreMemory, did: Did, other: float) -> None:
    short, long = (replace(memory, stall=pick(memory.stall, other)) for pick in (min, max))
    assert score(step, long, SHIPPED_LEVEL, did)[0] >= score(step, short, SHIPPED_LEVEL, did)[0]


@quick
@given(st.lists(steps, min_size=1, max_size=12), memories)
def test_a_stall_is_hard_however_quiet_its_steps(trajectory: list[Step], memory: ScoreMemory) -> None:
    for count, step in enumerate(trajectory, start=1):
        value, _, memory = score(step, memory, SHIPPED_LEVEL, DEAD)
        assert value >= 1 - 0.65 ** min(count, MAX_STALL) - 1e-4


@quick
@given(steps, memories, done)
def test_waiting_is_no_part_of_a_stall_before_it_is_dead(step: Step, memory: ScoreMemory, did: Did) -> None:
    after = score(step, memory, SHIPPED_LEVEL, replace(did, waiting=True))[2]
    assert after.stall == memory.stall or did.dead


@quick
@given(steps, memories, st.floats(0, 1))
def test_a_dead_or_failed_step_is_never_easy(step: Step, memory: ScoreMemory, easy: float) -> None:
    for did in (Did(letter="B"), Did(failed=True)):
        assert score(step, memory, SHIPPED_LEVEL, did, easy=easy)[0] >= round(easy, 4)


@quick
@given(memories, st.lists(done, max_size=20))
def test_the_count_of_a_stall_is_bounded(memory: ScoreMemory, trajectory: list[Did]) -> None:
    for did in trajectory:
        memory = score(Step(thought="I look."), memory, SHIPPED_LEVEL, did)[2]
        assert 0 <= memory.stall <= MAX_STALL


def test_one_bad_step_does_not_make_slow() -> None:
    trajectory = [*map(easy, range(8)), hard(8), *map(easy, range(9, 20))]
    assert FSMState.SLOW not in states(trajectory)


def test_errors_of_ever_new_kinds_end_fast() -> None:
    said = "Maybe that fails, I am unsure why the error comes."
    failing = [doing(said, f"{letter * 9}Error: no {letter * 5} in {letter}", True) for letter in "abcd"]
    passed = states([*map(easy, range(8)), *failing])
    assert (passed[7], passed[-1]) == (FSMState.FAST, FSMState.NORMAL)


AGAIN = doing("I look at the file again.", "the same content as ever")
STALLING = [*map(easy, range(8)), *[AGAIN] * 40]


def test_a_step_that_brings_nothing_new_ends_fast() -> None:
    passed = states([*map(easy, range(8)), AGAIN, AGAIN])
    assert passed[-2:] == [FSMState.FAST, FSMState.NORMAL]


@pytest.mark.parametrize(
    ("trajectory", "state"),
    [
        pytest.param([*map(easy, range(6))], FSMState.FAST, id="six easy steps"),
        pytest.param([*map(easy, range(8)), *map(hard, range(7))], FSMState.SLOW, id="bad steps without end"),
        pytest.param([*map(hard, range(6))], FSMState.SLOW, id="the same error from the start"),
        pytest.param([*map(easy, range(8)), *[AGAIN] * 7], FSMState.SLOW, id="a quiet loop is no easy stretch"),
        pytest.param([*STALLING, AGAIN], FSMState.SKIP, id="a stall of 40 steps"),
    ],
)
def test_a_run_comes_into_the_state_of_its_steps(trajectory: list[Step], state: FSMState) -> None:
    assert states(trajectory)[-1] is state


def test_three_steps_that_bring_something_new_end_skip() -> None:
    passed = states([*STALLING, AGAIN, *map(easy, range(8, 11))])
    assert passed[-4:] == [FSMState.SKIP, FSMState.SKIP, FSMState.SKIP, FSMState.NORMAL]


def test_polling_a_running_process_that_moves_is_no_stall() -> None:
    session = client().session()
    for share in range(45):
        poll = doing("I ask again.", f"status: running, {share} %")
        session.end_step(session.begin_step(StepInput(completed=poll)), StepOutcome(model="m"))
    assert "SLOW" not in [entry.fsm_state for entry in session.step_log]


@pytest.mark.parametrize("command", ["pytest -q", "python repro.py", "make test", "python3 -c 'import a'", "npm test"])
def test_an_error_of_a_test_or_a_script_counts_half(command: str) -> None:
    of_a_test, other = (doing("I try.", "boom", True, line) for line in (command, "ls src"))
    assert parts_of(of_a_test).errors == pytest.approx(parts_of(other).errors / 2)


def test_arguments_count_as_length() -> None:
    assert parts_of(doing("I edit.", "", command="x" * 500)).length > parts_of(doing("I edit.", "")).length


def test_a_text_that_is_handed_to_a_tool_counts_once() -> None:
    said = "Your flight is booked. Can I help you with anything else?"
    respond = ToolCall(id="c", name="respond", arguments={"content": said})
    assert parts_of(Step(thought=said, tool_calls=(respond,))).length == parts_of(Step(thought=said)).length


def test_the_length_of_a_result_does_not_count() -> None:
    assert parts_of(doing("I read.", "word " * 900)).length == parts_of(doing("I read.", "word")).length


def test_a_silent_step_with_a_failed_call_is_harder() -> None:
    assert difficulty(doing("", "boom", True)) > difficulty(doing("", "boom", False))


ROUTINE = [
    "I run the tests again and look at what fails",
    "Now I fix the error in the parser and check the exception that the second test reports.",
    "Let me see whether the failing test passes with this change applied to the module, then run all of them.",
]


@pytest.mark.parametrize("text", ROUTINE)
def test_a_routine_step_is_moderate(text: str) -> None:
    assert 0.2 < score_text(text, SHIPPED_LEVEL) < 0.7


@pytest.mark.parametrize(
    "text", ["我先阅读文件，然后运行测试，看看结果如何。", "Я читаю файл и смотрю, что в нём.", "ファイルを読みます"]
)
def test_a_text_of_another_language_has_no_hedges_and_no_errors_and_is_as_hard_as_an_english_one(text: str) -> None:
    four = parts_of(Step(thought=text))
    assert (four.hedging, four.errors) == (0, 0)
    assert abs(score_text(text, SHIPPED_LEVEL) - score_text("I read the file now.", SHIPPED_LEVEL)) < 0.2


def test_a_calibrated_level_is_the_prior() -> None:
    step = Step(thought="maybe an error in forms.py")
    easy, hard = Level(mean=0.9, spread=0.1), Level(mean=0.0, spread=0.1)
    assert score(step, FRESH, easy, NEW)[0] < score(step, FRESH, hard, NEW)[0]


def test_score_step_uses_the_prior_alone_and_rises_with_trouble() -> None:
    rb = client()
    assert rb.score_step("I read the file.") < rb.score_step("maybe the error failed again, unclear exception, cannot")
    assert rb.score_step("maybe an error") == score_text("maybe an error", SHIPPED_LEVEL)


def test_a_callers_score_is_used_as_it_is() -> None:
    session = client(scorer=lambda step: 0.123456789).session()
    run(session, 2)
    assert (session.step_log[1].difficulty, session.step_log[1].difficulty_parts) == (0.123456789, None)


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0])
def test_the_ends_of_the_scale_are_scores(value: Any) -> None:
    session = client(scorer=lambda step: value).session()
    run(session, 2)
    assert session.step_log[1].difficulty == value
