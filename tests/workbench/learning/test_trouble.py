"""Where a run first got into sustained trouble, and of what kind that was."""

from __future__ import annotations

from reasonblocks import ReasonBlocks, Step
from reasonblocks_workbench.learning import digest_of
from reasonblocks_workbench.learning._trouble import Trouble
from reasonblocks_workbench.replay import replay
from tests.workbench.learning.world import NO_SEATS, answer, look, run, step, update


def trouble(*steps: Step) -> Trouble | None:
    with ReasonBlocks(e_traces_enabled=False, strict=True) as rb:
        return digest_of(replay(rb, run("r", "failure", *steps)), {}).trouble


def test_a_run_in_which_all_goes_well_has_none() -> None:
    assert trouble(look(), step("read", "a page of text"), answer()) is None


def test_one_error_is_not_sustained() -> None:
    found = trouble(look(), update(NO_SEATS, flight="HAT290"), answer())
    assert found is not None
    assert not found.sustained


def test_a_second_error_of_the_tool_is() -> None:
    found = trouble(look(), update(NO_SEATS, flight="a"), update(NO_SEATS, flight="b"), answer())
    assert found is not None
    assert (found.sustained, found.at, found.steps) == (True, 2, (1, 2))
    assert (found.kind.form, found.kind.tool, found.kind.error) == (
        "error",
        "update_flights",
        "not enough seats on flight #",
    )


def test_a_success_between_two_errors_forgets_the_first() -> None:
    between = (update(NO_SEATS, flight="a"), update("updated", flight="b"), update(NO_SEATS, flight="c"))
    found = trouble(look(), *between, answer())
    assert found is not None
    assert not found.sustained


def test_the_same_call_with_the_same_result_is_a_repeat() -> None:
    again = [step("get_channels", "general, random, private and external") for _ in range(4)]
    found = trouble(*again, answer())
    assert found is not None
    assert (found.kind.form, found.kind.tool, found.kind.failure_type) == ("repeat", "get_channels", "churn")


def test_a_program_of_a_shell_is_part_of_the_tool() -> None:
    wrong = [step("bash", "Error: no such file", command=f"cd /src && grep -n x{n} a.py") for n in range(3)]
    found = trouble(*wrong, answer())
    assert found is not None
    assert found.kind.tool == "bash grep"
