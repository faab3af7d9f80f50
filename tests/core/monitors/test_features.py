"""What the monitors share of a step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reasonblocks.monitors.features import features_of
from reasonblocks.types import Step, ToolCall, ToolResult

Act = Callable[..., Step]


def test_a_results_own_flag_goes_before_its_words(act: Act) -> None:
    assert not features_of(act("run", "Error: none of it matters", is_error=False), 0).failing


def test_words_decide_where_no_flag_is_given(act: Act) -> None:
    assert features_of(act("run", "Error: no such column"), 0).failing


def test_a_failing_test_is_no_error_to_repeat(act: Act) -> None:
    assert features_of(act("bash", "1 failed", is_error=True, command="pytest -q"), 0).error is None


def test_parallel_calls_are_one_action_in_any_order() -> None:
    calls = [ToolCall(id=name, name=name, arguments={"q": 1}) for name in "ab"]
    both = [features_of(Step(tool_calls=tuple(order)), 0).call for order in (calls, calls[::-1])]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("python -m pytest tests", "test"),
        ("sed -i s/a/b/ x.py", "edit"),
        ("cat > x.py <<'E'\nE", "edit"),
        ("grep -rn foo src", "search"),
        ("head -20 x.py", "read"),
        ("SELECT a FROM b", "read"),
    ],
)
def test_a_shell_plays_the_part_of_its_command(act: Act, command: str, role: str) -> None:
    assert role in features_of(act("bash", "", command=command), 0).roles


def test_throwing_output_away_is_no_edit(act: Act) -> None:
    assert "edit" not in features_of(act("bash", "", command="grep foo x.py 2>/dev/null"), 0).roles


@pytest.mark.parametrize(
    ("name", "role"),
    [("Edit", "edit"), ("readFile", "read"), ("run_tests", "test"), ("web_search", "search"), ("submit", "finish")],
)
def test_a_tool_plays_the_part_of_its_name(act: Act, name: str, role: str) -> None:
    assert features_of(act(name, ""), 0).roles == {role}


def test_changing_a_record_is_no_edit_of_a_file(act: Act) -> None:
    assert features_of(act("create_event", "", title="lunch"), 0).roles == frozenset()


def test_the_callers_word_for_a_tool_goes_first(act: Act) -> None:
    assert features_of(act("get_file", ""), 0, tool_roles={"get_file": "test"}).roles == {"test"}


def test_a_tool_name_that_a_text_shows_is_plain(act: Act) -> None:
    assert features_of(act("a. b\n{c}", ""), 0).tool == "a_b_c_"


def test_the_middle_of_a_huge_output_is_not_looked_at() -> None:
    edges = "a" * 8_000
    one, other = (f"{edges}{middle * 500_000}{edges}" for middle in "xy")
    results = [Step(tool_results=(ToolResult(call_id="c", output=text),)) for text in (one, other)]
    assert features_of(results[0], 0).result == features_of(results[1], 0).result
