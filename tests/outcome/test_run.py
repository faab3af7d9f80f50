"""A run is steered by the library's own session, and a branch goes on from the very state of its shadow run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from _outcome.arms import ARMS
from _outcome.backend import Query, Reply, WithStronger
from _outcome.environment import Call, Environment, tool
from _outcome.play import play
from _outcome.policies import RandomBackend
from _outcome.rows import Made, Row
from _outcome.run import NO_CALL, NotRepeatable, Point, Run
from _outcome.tasks.claim import Claim
from _outcome.tasks.house import House

from reasonblocks.render import FRAME
from tests.outcome.played import Cells, Scripted, counted, go, played, run, setting, to_and_fro, turns

STEERED = [
    name
    for name, arm in ARMS.items()
    if arm.steers and not arm.wait and arm.patience is None and name not in ("untried-only", "only-call", "advisor")
]


def shadow_in_house(seed: int) -> tuple[Run, list[Query]]:
    backend = RandomBackend(repeats=0.8)
    one = run(factory=House, family="house", seed=seed)
    return one, played(one, lambda query: backend.complete([query])[0])


@pytest.fixture(scope="module")
def shadows() -> list[tuple[Run, list[Query]]]:
    """Runs in houses in which the library would have spoken."""
    found = [shadow_in_house(seed) for seed in range(12)]
    return [(one, queries) for one, queries in found if one.point is not None]


def point_of(one: Run) -> Point:
    assert one.point is not None
    return one.point


def without(query: Query, *, told: str) -> list[Mapping[str, Any]]:
    """The messages of a request without a text at its end."""
    *before, last = query.messages
    own, _, text = last["content"].partition(f"\n\n{FRAME}")
    assert f"{FRAME}{text}" == told
    return [*before, {**last, "content": own}]


# --- branches


def test_a_branch_starts_with_the_request_of_its_shadow_run_and_the_text_that_was_due(
    shadows: list[tuple[Run, list[Query]]],
) -> None:
    assert len(shadows) > 3
    for one, queries in shadows:
        point = point_of(one)
        at = len(point.calls)
        branch = Run(one.setting, ARMS["shipped"], 0, "branch", point)
        first = branch.query(0)
        (told,) = branch.row().told
        assert without(first, told=told.text) == queries[at].messages
        assert (first.tools, first.choices, first.seed) == (queries[at].tools, queries[at].choices, queries[at].seed)
        assert (told.step, told.kind, told.monitor) == (at, point.kind, point.monitor)


def test_the_session_of_a_branch_knows_what_that_of_the_shadow_run_knew() -> None:
    known: list[dict[str, Any]] = []
    one = run()
    while one.point is None:
        known.append(one._session.trace.snapshot())
        one.take(to_and_fro(one.query(0)))
    # the point's own step is decided by now: the snapshot before it is the state
    branch = run("shipped", phase="branch", start=one.point)
    mine = branch._session.trace.snapshot()
    assert {**mine, "trace_id": ""} == {**known[-1], "trace_id": ""}


def test_unsteered_the_first_sample_of_a_branch_is_the_shadow_run_again(
    shadows: list[tuple[Run, list[Query]]],
) -> None:
    backend = RandomBackend(repeats=0.8)
    one, queries = shadows[0]
    branch = Run(one.setting, ARMS["off"], 0, "branch", one.point)
    mine = played(branch, lambda query: backend.complete([query])[0])
    assert mine == queries[len(point_of(one).calls) :]
    assert branch.row().calls == one.row().calls
    assert branch.row().told == ()


def test_a_branch_survives_its_way_through_the_store() -> None:
    one = run()
    played(one, lambda query: Reply(text="Hm.") if turns(query) == 1 else to_and_fro(query))
    row = Row.of(json.loads(json.dumps(one.row().as_dict())))
    assert row.calls[1] == Made(name="", arguments={}, output="", thought="Hm.")
    assert row.point is not None
    stored = Point(calls=row.calls[: row.point], kind=row.kind, monitor=row.monitor)
    branch, again = (run("shipped", phase="branch", start=start) for start in (stored, one.point))
    assert branch.query(0) == again.query(0)


def test_an_environment_with_other_results_cannot_be_branched_and_is_closed() -> None:
    one = run()
    played(one, to_and_fro)
    point = point_of(one)
    factory = counted()
    other = replace(point, calls=(replace(point.calls[0], output="You are in cell 7."), *point.calls[1:]))
    with pytest.raises(NotRepeatable, match=r"cells, seed 1: go\(.*gave 'You are in cell 7.' and now 'You are in cell"):
        run("off", phase="branch", start=other, factory=factory)
    assert (factory.opened, factory.closed) == (1, 1)


def test_a_branch_counts_the_steps_before_it() -> None:
    one = run()
    played(one, to_and_fro)
    branch = run("off", phase="branch", start=one.point)
    assert len(played(branch, to_and_fro)) == Cells.max_steps - len(point_of(one).calls)
    assert branch.row().steps == Cells.max_steps


# --- seeds


def test_sampling_seeds_are_those_of_all_arms_and_differ_by_sample_and_step() -> None:
    one = run()
    played(one, to_and_fro)
    seeds = {
        (arm, sample): tuple(
            query.seed for query in played(run(arm, phase="branch", start=one.point, sample=sample), to_and_fro)
        )
        for arm in ("off", "shipped", "generic")
        for sample in (0, 1)
    }
    assert len({seeds[arm, 0] for arm in ("off", "shipped", "generic")}) == 1
    assert len({*seeds["off", 0], *seeds["off", 1]}) == 2 * len(seeds["off", 0])


# --- what arms say


@pytest.mark.parametrize("arm", STEERED)
def test_every_steering_arm_speaks_at_the_point(arm: str) -> None:
    one = run()
    played(one, to_and_fro)
    branch = run(arm, phase="branch", start=one.point)
    branch.query(0)
    (told,) = branch.row().told
    assert (told.step, told.monitor) == (len(point_of(one).calls), point_of(one).monitor)


@pytest.mark.parametrize("arm", ["off", "look-unchecked", "rules", "all-rules"])
def test_an_arm_that_does_not_steer_sends_in_a_branch_what_off_sends(arm: str) -> None:
    one = run()
    whole = played(one, to_and_fro)
    branch = run(arm, phase="branch", start=one.point)
    assert played(branch, to_and_fro) == whole[len(point_of(one).calls) :]
    assert branch.row().told == ()


def test_a_shadow_run_and_a_whole_run_that_is_off_say_nothing_but_have_their_point() -> None:
    shadow, whole = run(), run(phase="whole")
    assert played(shadow, to_and_fro) == played(whole, to_and_fro)
    assert (shadow.row().told, whole.row().told) == ((), ())
    assert shadow.row().point == whole.row().point == len(point_of(shadow).calls)
    assert (shadow.row().kind, shadow.row().monitor) == ("repeat", "semantic_loop")


def test_a_wait_says_nothing_before_its_end_and_then_what_the_monitor_finds() -> None:
    one = run()
    played(one, to_and_fro)
    at = len(point_of(one).calls)
    for phase, start in (("branch", one.point), ("whole", None)):
        late = run("later", phase=phase, start=start)
        played(late, to_and_fro)
        first = late.row().told[0]
        assert (first.step, first.monitor) == (at + ARMS["later"].wait, "semantic_loop")


def test_the_most_injections_of_an_arm_are_a_limit() -> None:
    factory = type("ManyCells", (Cells,), {"max_steps": 30})

    def two_troubles(query: Query) -> Reply:
        made = turns(query)
        return go(10 + made) if 10 <= made < 16 else to_and_fro(query)

    one = run(factory=factory)
    played(one, two_troubles)
    steered, once = (run(arm, phase="branch", start=one.point, factory=factory) for arm in ("shipped", "once"))
    played(steered, two_troubles)
    played(once, two_troubles)
    assert len(steered.row().told) > 1
    assert once.row().told == steered.row().told[:1]


def test_standing_rules_are_told_at_the_first_call_of_a_whole_run_only() -> None:
    told = {}
    for arm in ("rules", "all-rules", "default"):
        whole = run(arm, phase="whole")
        queries = played(whole, to_and_fro)
        rules = [text for text in whole.row().told if text.sources == ("E3Injection",)]
        assert [(text.step, text.monitor, text.kind) for text in rules] == [(0, None, None)]
        assert queries[0].messages[-1]["content"].endswith(rules[0].text)
        assert not any(rules[0].text in str(query.messages) for query in queries[1:])
        told[arm] = rules[0].text.count("\n- ")
    assert 0 < told["default"] == told["rules"] < told["all-rules"]


def test_no_standing_rule_is_told_in_a_branch() -> None:
    one = run()
    played(one, to_and_fro)
    branch = run("default", phase="branch", start=one.point)
    played(branch, to_and_fro)
    assert branch.row().told
    assert not any("E3Injection" in told.sources for told in branch.row().told)


# --- a second look


class Checked(Cells):
    """Cells with a test that fails in all of them, and an end that can be taken back."""

    tools = (*Cells.tools, tool("run_tests", "Run the tests"), tool("finish", "End the task", report="what was done"))
    reopened = 0

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name == "run_tests":
            return "FAILED test_goal: 1 failed"
        return super().call("stop" if name == "finish" else name, arguments)

    def reopen(self) -> None:
        type(self).reopened += 1
        self._stopped = False


TEST, FINISH = Call("run_tests", {}), Call("finish", {"report": "All tests pass."})


def ended(arm: str, *calls: Call, factory: Callable[[], Environment] = Checked) -> tuple[Run, list[Query]]:
    one = run(arm, phase="whole", factory=factory)
    given = iter([*calls, FINISH])
    return one, played(one, lambda query: Reply(text="All tests pass.", call=next(given)))


def test_a_claim_after_failing_tests_is_taken_back_once() -> None:
    one, queries = ended("look-doubt", TEST, FINISH)
    row = one.row()
    (told,) = row.told
    assert "The newest check, 1 step before this answer, failed, and no change was seen after it." in told.text
    assert (told.step, told.sources) == (2, ("second look",))
    assert queries[2].messages[-1] == {"role": "user", "content": told.text}
    assert (row.steps, row.ended, row.won) == (3, True, False)


def test_a_task_that_is_ended_on_failing_checks_is_taken_back() -> None:
    one = Run(setting(Claim), ARMS["look-doubt"], 0, "whole")
    calls = iter([Call("run_checks", {}), Call("finish", {"report": "Everything works."})])
    played(one, lambda query: Reply(call=next(calls, None)))
    (told,) = one.row().told
    assert "The newest check, 1 step before this answer, failed, and no change was seen after it." in told.text


def test_an_end_without_a_doubt_stays() -> None:
    one = run("look-doubt", phase="whole", factory=Checked)
    calls = iter([Call("finish", {"report": "It is done."})])
    played(one, lambda query: Reply(text="It is done.", call=next(calls)))
    assert (one.row().told, one.row().steps, one.row().ended) == ((), 1, True)


def test_a_solved_task_without_a_doubt_stays_solved() -> None:
    environment = Claim()
    environment.reset(1)
    calls = []
    while not environment.done:
        call = environment.reference()
        assert call is not None
        calls.append(call)
        environment.call(call.name, call.arguments)
    one, _ = ended("look-unchecked", *calls, factory=Claim)
    assert (one.row().told, one.row().won, one.row().steps) == ((), True, len(calls))


def test_an_end_at_the_last_step_is_not_taken_back() -> None:
    class Short(Checked):
        max_steps = 2
        reopened = 0

    one, _ = ended("look-doubt", TEST, factory=Short)
    assert (one.row().told, one.row().ended, one.row().steps, Short.reopened) == ((), True, 2, 0)


def test_other_arms_take_nothing_back() -> None:
    one, _ = ended("shipped", TEST)
    assert (one.row().told, one.row().steps) == ((), 2)


def test_every_end_may_be_taken_back_once() -> None:
    one = run("look-always", phase="whole", factory=Checked)
    played(one, lambda query: Reply(call=Call("finish", {"report": "It is done."})))
    (told,) = one.row().told
    assert 'The task: "' in told.text
    assert (told.step, one.row().steps) == (1, 2)


# --- a budget, a stronger model, an advisor


@pytest.mark.parametrize(("arm", "count"), [("budget", 2), ("budget-every-call", Cells.max_steps)])
def test_a_budget_tells_the_steps_that_a_task_has(arm: str, count: int) -> None:
    one = run(arm, phase="whole")
    queries = played(one, to_and_fro)
    lines = [text for text in one.row().told if text.sources == ("BudgetInjection",)]
    assert len(queries) == Cells.max_steps
    assert len(lines) >= count
    assert f"of {Cells.max_steps} calls" in lines[0].text
    assert lines[-1].step == Cells.max_steps - 1
    assert {text.monitor for text in lines} == {None}
    assert not any("repeat" in text.text for text in one.row().told)


def test_an_escalated_call_asks_the_stronger_model() -> None:
    own, strong = Scripted(to_and_fro, lanes=1, in_rounds=False), Scripted(to_and_fro, lanes=1, in_rounds=False)
    one = run("escalate", phase="whole")
    done: list[Row] = []
    play([iter([one])], WithStronger(own, strong), lambda finished: done.append(finished.row()))
    (row,) = done
    assert row.told == ()
    assert (len(strong.asked), len(own.asked)) == (row.strong, row.steps - row.strong)
    assert row.strong in (4, 8)


def test_an_advisor_is_a_model_that_sees_no_tools_and_counts() -> None:
    def policy(query: Query) -> Reply:
        return to_and_fro(query) if query.tools else Reply(text="Go to cell 3.", prompt=100, completion=5)

    backend = Scripted(policy, lanes=1, in_rounds=False)
    one = run("advisor", phase="whole")
    done: list[Row] = []
    play([iter([one])], backend, lambda finished: done.append(finished.row()))
    (row,) = done
    told = [text for text in row.told if 'Another model, asked for advice, says: "Go to cell 3."' in text.text]
    asked = [query for query in backend.asked if not query.tools]
    assert 0 < len(told) == len(asked)
    assert row.prompt >= 100 * len(asked)
    assert all(query.strong for query in asked)


# --- turns and rows


def test_a_turn_without_a_call_is_a_step_and_asks_for_a_call() -> None:
    one = run()
    queries = played(one, lambda query: Reply(text="I think.") if turns(query) == 0 else go(5))
    assert queries[1].messages[-2:] == [
        {"role": "assistant", "content": "I think."},
        {"role": "user", "content": NO_CALL},
    ]
    row = one.row()
    assert (row.steps, row.won, row.ended) == (2, True, True)
    assert row.calls[0] == Made(name="", arguments={}, output="", thought="I think.")


def test_a_call_without_a_name_is_a_turn_without_a_call() -> None:
    one = run()
    one.query(0)
    one.take(Reply(text="Hm.", call=Call("", {"cell": "1"})))
    assert one.row().calls == (Made(name="", arguments={}, output="", thought="Hm."),)


def test_a_refused_call_is_read_as_an_error() -> None:
    one = run()
    one.query(0)
    one.take(Reply(call=Call("fly", {})))
    assert one.query(0).messages[-1]["content"] == "Error: unknown tool fly"
    assert one.row().calls[0].is_error


def test_a_row_has_the_tokens_of_the_run_and_none_for_those_that_are_unknown() -> None:
    one, two = run(), run()
    played(one, lambda query: go(5 if turns(query) == 2 else 1))
    played(two, lambda query: replace(go(5 if turns(query) == 2 else 1), cached=None if turns(query) == 1 else 4))
    assert (one.row().prompt, one.row().evaluated, one.row().completion) == (30, 18, 6)
    assert (two.row().prompt, two.row().evaluated, two.row().completion) == (30, None, 6)


def test_a_row_says_how_the_run_ended() -> None:
    won, stopped, out = run(), run(), run()
    played(won, lambda query: go(5))
    played(stopped, lambda query: Reply(call=Call("stop", {})))
    played(out, lambda query: go(1))
    ends = [(row.won, row.ended, row.steps) for row in (won.row(), stopped.row(), out.row())]
    assert ends == [(True, True, 1), (False, True, 1), (False, False, Cells.max_steps)]


def test_a_branch_has_its_point_and_whether_it_can_be_won() -> None:
    one = run()
    played(one, to_and_fro)
    row = run("shipped", phase="branch", start=replace(point_of(one), winnable=True)).row()
    assert (row.phase, row.arm, row.point, row.kind, row.monitor) == ("branch", "shipped", 6, "repeat", "semantic_loop")
    assert row.winnable is True
    assert (one.row().model, one.row().through, one.row().winnable) == ("scripted", "loop", None)


def test_a_run_whose_environment_cannot_start_is_closed() -> None:
    factory = counted()

    class Broken(factory):  # type: ignore[misc, valid-type]
        def reset(self, seed: int) -> str:
            raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        Run(setting(Broken), ARMS["off"], 0, "shadow")
    assert Broken.closed == 1
