"""Steps that are dead, and steps that look like them but are work."""

from __future__ import annotations

import pytest

from reasonblocks.types import Step, ToolCall, ToolResult

from .runs import after, bash, letters, step

RED = "FAILED tests/test_a.py::test_sum - AssertionError: assert 3 == 4\n1 failed in 0.02s"


def edit(number: int, answer: str = "The file was edited.") -> Step:
    """Return a change of one file with new content."""
    return step("edit_file", {"path": "a.py", "old": f"x{number}", "new": f"y{number}"}, answer)


def test_a_change_makes_the_same_check_and_the_same_read_work() -> None:
    check, look = bash("pytest -q", RED, is_error=True), bash("cat a.py", "x = 1")
    assert letters(check, look, edit(1), look, check, edit(2), look) == "......."
    assert letters(check, check, look, look) == ".A.A"


def test_a_refused_change_moves_no_mark_but_allows_one_look() -> None:
    look, refused = bash("cat a.py", "x = 1"), edit(1, "Error: old text was not found")
    assert letters(look, refused, look, refused, look) == "...AA"


def test_the_same_message_from_the_same_tool_is_dead_until_something_changes() -> None:
    errors = [bash(f"python run.py --n {number}", "KeyError: 'name'", is_error=True) for number in range(3)]
    assert letters(*errors) == ".BB"
    assert letters(errors[0], edit(1), errors[1]) == "..."


def test_an_act_with_equal_arguments_is_dead_whatever_it_answers() -> None:
    refund = [step("refund", {"order": 1}, f"refund {number} is booked") for number in "ab"]
    assert letters(refund[0], step("send_email", {"to": "a", "text": "b"}, "sent"), refund[1]) == "..A"


def test_acts_with_new_arguments_are_work_although_their_answers_are_alike() -> None:
    sql = [
        step("execute_sql", {"query": f"UPDATE users SET name = 'n' WHERE id = {number}"}, "UPDATE 1")
        for number in range(8)
    ]
    labels = [
        step("add_label", {"issue": number, "label": "bug"}, "The label was added to the issue.") for number in range(8)
    ]
    deleted = [step("delete_block", {"id": f"b{number}"}, f"deleted b{number}") for number in range(8)]
    assert letters(*sql) == letters(*labels) == letters(*deleted) == "." * 8


def test_the_next_job_that_is_always_the_same_is_seen() -> None:
    assert letters(*[step("next_job", {}, "No jobs are waiting for you.")] * 4) == ".AAA"


def test_empty_input_to_something_that_runs_asks_and_is_no_change() -> None:
    ask = step("write_stdin", {"session_id": 1, "chars": ""}, "Compiling foo v0.1.0")
    account = after(edit(1), ask, ask)
    assert account.mark == 0
    assert account.letters == "..."


def test_a_guess_after_the_other_is_one_trouble_told_at_the_tenth() -> None:
    guesses = [
        step("login", {"user": "admin", "password": f"pw{number}"}, "Error: wrong password") for number in range(12)
    ]
    assert after(*guesses[:9]).letters == "." * 9
    assert after(*guesses[:10]).did.due == "series"
    assert after(*guesses[:11]).did.due == ""


def test_a_check_that_ends_the_same_way_after_three_changes_is_due() -> None:
    steps = [bash("pytest -q", RED, is_error=True)]
    for number in range(3):
        assert after(*steps).did.due == ""
        steps += [edit(number), bash("pytest -q", RED, is_error=True)]
    assert after(*steps).did.due == "check"
    assert set(after(*steps).letters) == {"."}


def test_checks_of_different_scripts_are_no_check_loop() -> None:
    scripts = [f"cat > test_{name}.py <<'EOF'\nprint({name!r})\nEOF\npython test_{name}.py" for name in "abcdef"]
    inline = [f"sed -i s/1/{n}/ app.py && python - <<'EOF'\nassert app.f({n})\nEOF" for n in range(6)]
    assert after(*[bash(script, RED, is_error=True) for script in scripts]).did.due == ""
    assert after(*[bash(script, RED, is_error=True) for script in inline]).did.due == ""


def test_one_command_may_change_and_check() -> None:
    commands = [f"sed -i s/1/{n}/ app.py && pytest -q" for n in range(2)]
    commands += [f"cd src; sed -i s/1/{n}/ app.py\npytest -q | tail -5" for n in range(2, 4)]
    assert [after(*[bash(one, RED, is_error=True) for one in commands[:n]]).did.due for n in (3, 4)] == ["", "check"]


def test_a_check_whose_message_moves_is_work() -> None:
    steps: list[Step] = []
    for number in range(6):
        red = RED.replace("test_sum", f"test_{chr(97 + number)}")
        steps += [edit(number), bash("pytest -q", red, is_error=True)]
    assert after(*steps).did.due == ""


def test_a_new_message_of_the_user_is_a_new_situation() -> None:
    look = step("get_order", {"id": 1}, "Order 1 is open.")
    again = step("get_order", {"id": 1}, "Order 1 is open.", user_text="And now?")
    assert letters(look, look, again) == ".A."
    assert letters(look, again, again) == "..A"


def test_a_turn_of_parallel_calls_is_dead_if_all_its_calls_are() -> None:
    def turn(*names: str) -> Step:
        calls = tuple([ToolCall(id=name, name="read_file", arguments={"path": name}) for name in names])
        results = tuple([ToolResult(call_id=name, name="read_file", output=f"text of {name}") for name in names])
        return Step(tool_calls=calls, tool_results=results)

    assert letters(turn("a", "b"), turn("b", "c"), turn("a", "c")) == "..A"


def test_a_step_that_the_log_holds_twice_counts_once() -> None:
    one = step("read_file", {"path": "a"}, "text", call_id="toolu_0123456789")
    assert after(one, one).letters == "."


def test_an_id_that_a_later_call_uses_was_news() -> None:
    made = [step("open_session", {}, f"session_id: s-{number}") for number in (881, 882)]
    used = step("query_session", {"session": "s-882"}, "42 rows")
    assert letters(*made) == ".A"
    assert letters(*made, used) == "..."


@pytest.mark.parametrize(
    ("role", "expected"), [("change", "....."), ("read", ".AAAA"), ("list", ".AAAA"), ("ask", ".....")]
)
def test_a_role_of_the_caller_goes_before_the_tool_s_name(role: str, expected: str) -> None:
    steps = [
        step("frobnicate", {"n": number if role == "change" else 1}, "It is done as you asked.") for number in range(5)
    ]
    assert letters(*steps, roles={"frobnicate": role}) == expected
