"""How hard a step was: bounded, pure, negation-aware, against the agent's own level."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.scoring import LEVEL_STEPS, SHIPPED_LEVEL, score, score_text
from reasonblocks.types import DifficultyParts, Level, ScoreMemory, Step, ToolCall, ToolResult
from tests.core.world import client, run

quick = settings(derandomize=True, deadline=None, database=None, max_examples=100)
FRESH = ScoreMemory()
CALL = ToolCall(id="c", name="run_tests", arguments={"path": "tests"})

told = st.sampled_from("error maybe no 0 failed forms.py the \n".split(" "))
texts = st.one_of(st.text(max_size=200), st.lists(told).map(" ".join))
results = st.builds(ToolResult, call_id=st.just("c"), output=texts, is_error=st.sampled_from([None, True, False]))
steps = st.builds(
    Step, thought=texts, reasoning=texts, tool_calls=st.just((CALL,)), tool_results=results.map(lambda one: (one,))
)


def with_result(output: str, flag: bool | None, thought: str = "I run the tests now.") -> Step:
    result = ToolResult(call_id="c", output=output, is_error=flag)
    return Step(thought=thought, tool_calls=(CALL,), tool_results=(result,))


def parts(step: Step) -> DifficultyParts:
    return score(step, FRESH, SHIPPED_LEVEL)[1]


def difficulty(step: Step) -> float:
    return score(step, FRESH, SHIPPED_LEVEL)[0]


@quick
@given(st.lists(steps, min_size=1, max_size=10))
def test_a_difficulty_is_in_0_to_1(trajectory: list[Step]) -> None:
    memory = FRESH
    for step in trajectory:
        value, _, memory = score(step, memory, SHIPPED_LEVEL)
        assert 0 <= value <= 1


@quick
@given(steps)
def test_every_part_is_in_0_to_1(step: Step) -> None:
    four = parts(step)
    assert all(0 <= part <= 1 for part in (four.hedging, four.length, four.errors, four.entities))


@quick
@given(steps, st.builds(ScoreMemory, count=st.integers(0, 8), total=st.floats(0, 1), squares=st.floats(0, 1)))
def test_scoring_is_pure(step: Step, memory: ScoreMemory) -> None:
    assert score(step, memory, SHIPPED_LEVEL) == score(step, memory, SHIPPED_LEVEL)


@quick
@given(texts)
def test_a_text_is_scored_in_0_to_1(text: str) -> None:
    assert 0 <= score_text(text, SHIPPED_LEVEL) <= 1


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


QUIET = ["0 errors", "no exception", "no errors found", "without error", "errors: 0", "zero failures"]


@pytest.mark.parametrize("text", QUIET)
def test_a_negated_error_counts_nothing(text: str) -> None:
    assert parts(Step(thought=text)).errors == 0


@pytest.mark.parametrize("text", ["an error", "3 errors", "it failed", "Traceback", "ERROR", "an exception"])
def test_an_error_counts(text: str) -> None:
    assert parts(Step(thought=text)).errors > 0


@pytest.mark.parametrize("text", ["it terrors me", "errorless", "a failsafe"])
def test_errors_are_counted_by_words(text: str) -> None:
    assert parts(Step(thought=text)).errors == 0


@pytest.mark.parametrize("text", ["it couldn't", "it couldn’t"])
def test_a_contraction_is_one_word(text: str) -> None:
    assert parts(Step(thought=text)).hedging == 0


def test_a_hedge_counts() -> None:
    assert parts(Step(thought="it could be")).hedging > 0


def test_a_flagged_success_counts_nothing_of_its_words() -> None:
    assert parts(with_result("error failed exception", False)).errors == 0


def test_a_flagged_failure_counts_whatever_its_words() -> None:
    assert parts(with_result("fine", True)).errors > 0


def test_the_words_of_an_unflagged_observation_count() -> None:
    assert parts(with_result("error: it failed", None)).errors > 0


@pytest.mark.parametrize("output", ["fine", "error failed", "0 errors"])
def test_the_flag_alone_decides_what_an_observation_adds(output: str) -> None:
    assert parts(with_result(output, True)).errors == parts(with_result("anything", True)).errors


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


def levels(count: int) -> list[ScoreMemory]:
    memory, seen = FRESH, [FRESH]
    for number in range(count):
        memory = score(Step(thought=f"maybe error {number} " * number), memory, SHIPPED_LEVEL)[2]
        seen.append(memory)
    return seen


def test_the_own_level_is_shaped_by_each_of_the_first_8_steps() -> None:
    assert len(set(levels(8))) == 9 == LEVEL_STEPS + 1


def test_the_own_level_is_fixed_after_8_steps() -> None:
    assert len(set(levels(30)[8:])) == 1


def test_trouble_that_stays_is_not_learned_as_normal() -> None:
    calm, trouble = Step(thought="I read the file."), Step(thought="maybe an error failed again, unclear exception")
    memory, difficulties = FRESH, list[float]()
    for step in [calm] * 8 + [trouble] * 30:
        value, _, memory = score(step, memory, SHIPPED_LEVEL)
        difficulties.append(value)
    assert len(set(difficulties[8:])) == 1


def test_a_calibrated_level_is_the_prior() -> None:
    step = Step(thought="maybe an error in forms.py")
    easy, hard = Level(mean=0.9, spread=0.1), Level(mean=0.0, spread=0.1)
    assert score(step, FRESH, easy)[0] < score(step, FRESH, hard)[0]


def test_score_step_uses_the_prior_alone() -> None:
    rb = client()
    assert rb.score_step("maybe an error") == score_text("maybe an error", SHIPPED_LEVEL)


def test_score_step_rises_with_trouble() -> None:
    rb = client()
    assert rb.score_step("I read the file.") < rb.score_step("maybe the error failed again, unclear exception, cannot")


def test_a_callers_score_is_used_as_it_is() -> None:
    session = client(scorer=lambda step: 0.123456789).session()
    run(session, 2)
    assert (session.step_log[1].difficulty, session.step_log[1].difficulty_parts) == (0.123456789, None)


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0])
def test_the_ends_of_the_scale_are_scores(value: Any) -> None:
    session = client(scorer=lambda step: value).session()
    run(session, 2)
    assert session.step_log[1].difficulty == value
