"""Equal calls, changes and failures are told apart from work."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from reasonblocks.messages.content import output_of
from reasonblocks.monitors.features import features_of
from reasonblocks.types import Evaluation, Step, ToolCall, ToolResult
from tests.pictures import forms

Act = Callable[..., Step]
Fired = Callable[[Sequence[Step]], set[str]]
Play = Callable[..., "list[Evaluation]"]

LONG = "The archive holds the minutes of the council from 1890 to 1914, in four boxes on the second shelf."


def calls(*arguments: dict[str, str]) -> list[int | None]:
    """The identities of calls of one tool with these arguments."""
    made = [Step(tool_calls=(ToolCall(id="c", name="edit", arguments=dict(given)),)) for given in arguments]
    return [features_of(step, 0).call for step in made]


def kinds(play: Play, steps: Sequence[Step]) -> set[str]:
    return {evaluation.kind for evaluation in play(steps) if evaluation.kind}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"old_str": "    return year"}, {"old_str": "        return year"}),
        ({"new": "if leap:\n    days = 366"}, {"new": "if leap:\n        days = 366"}),
        ({"new": "x = 1 # leap"}, {"new": "x = 1  # leap"}),
        ({"command": "cat > a.py <<'E'\nif x:\n  y()\nE"}, {"command": "cat > a.py <<'E'\nif x:\n    y()\nE"}),
        ({"command": "sed -i 's/^  x/    x/' a.py"}, {"command": "sed -i 's/^  x/  x/' a.py"}),
    ],
)
def test_calls_that_differ_in_white_space_are_different(one: dict[str, str], other: dict[str, str]) -> None:
    assert len({*calls(one, other)}) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"command": "pytest -q"}, {"command": "  pytest -q\n"}),
        ({"query": "leap  year"}, {"query": " leap year"}),
    ],
)
def test_white_space_that_means_nothing_makes_no_difference(one: dict[str, str], other: dict[str, str]) -> None:
    assert len({*calls(one, other)}) == 1


def test_a_rejected_edit_and_its_correction_in_indentation_are_quiet(act: Act, fired: Fired) -> None:
    steps = [
        act("edit_file", "No replacement was performed: the text was not found.", path="a.py", old="  x = 1", new="y"),
        act("edit_file", "File updated.", path="a.py", old="    x = 1", new="y"),
    ]
    assert fired(steps) == set()


@pytest.mark.parametrize(
    "answer",
    [
        "Your proposed edit has introduced new syntax error(s). Please read this message and retry.",
        "Could not find the following lines to replace in the file content:",
        "Found multiple (3) occurrences of the lines. Add more context.",
        "The old text is not unique in parser.py.",
        "patching file parser.py\nHunk #1 FAILED at 12.",
        "No changes were made to the file.",
        "Edit rejected: the file is read-only.",
    ],
)
def test_a_refused_edit_changes_nothing_and_is_an_error(act: Act, answer: str) -> None:
    features = features_of(act("edit_file", answer, is_error=False, path="parser.py", new="x"), 0)
    assert (features.changed, features.failing) == (False, True)


@pytest.mark.parametrize("answer", ["File updated.", "", "Edit was successful. Here is the new content:\n1: import os"])
def test_an_accepted_edit_changes_something(act: Act, answer: str) -> None:
    assert features_of(act("edit_file", answer, path="parser.py", new="x"), 0).changed


def test_a_written_program_that_fails_when_it_is_run_was_written_all_the_same(act: Act) -> None:
    command = "cat > probe.py <<'E'\nprint(leap)\nE\npython probe.py"
    assert features_of(act("bash", "NameError: name 'leap' is not defined", command=command), 0).changed


def test_done_after_a_refused_edit_alone_leaves_nothing_unchecked(act: Act, fired: Fired) -> None:
    refused = act("edit_file", "No changes were made to the file.", path="parser.py", new="x")
    assert "verification_skip" not in fired([refused, Step(thought="The task is complete.")])


def test_what_was_read_stays_known_after_a_refused_edit(act: Act, fired: Fired) -> None:
    files = [act("read_file", f"text of {n}, {LONG}", path=f"f{n}.py") for n in range(7)]
    refused = act("edit_file", "No changes were made to the file.", path="f1.py", new="x")
    assert "cyclic_compression" in fired([*files, refused, files[0], files[2], files[4]])


def test_a_change_made_again_with_nothing_in_between_is_the_same_change(act: Act, play: Play) -> None:
    change = act("edit_file", "File updated.", path="parser.py", new="x = 1")
    looks = [act("read_file", f"line {n}", path="parser.py", offset=n) for n in range(2)]
    assert "redone" in kinds(play, [change, *looks, change])


def test_a_change_made_again_after_another_one_is_work(act: Act, play: Play) -> None:
    change = act("edit_file", "File updated.", path="parser.py", new="x = 1")
    other = act("edit_file", "File updated.", path="parser.py", new="x = 0")
    assert "redone" not in kinds(play, [change, other, change])


def test_two_failures_of_one_kind_in_a_row_are_quiet(act: Act, fired: Fired) -> None:
    steps = [act("open_page", f"Error: page {n} is not there", is_error=True, url=f"u{n}") for n in range(2)]
    assert fired(steps) == set()


def test_three_failures_in_a_row_are_a_loop(act: Act, fired: Fired) -> None:
    steps = [act("open_page", f"Error: page {n} is not there", is_error=True, url=f"u{n}") for n in range(3)]
    assert "semantic_loop" in fired(steps)


def test_a_call_that_fails_in_another_way_is_no_retry_of_the_same_error(act: Act, play: Play) -> None:
    steps = [
        act("apply_patch", "Error: hunk 1 failed", is_error=True, file="a.diff"),
        act("read_file", "text", path="a.diff"),
        act("apply_patch", "Error: hunk 3 has no context", is_error=True, file="a.diff"),
    ]
    assert "retry" not in kinds(play, steps)


def test_different_calls_with_one_long_result_are_a_loop(act: Act, play: Play) -> None:
    steps = [act("search", LONG, query=words) for words in ("council minutes", "minutes 1900", "council archive")]
    assert "same_result" in kinds(play, steps)


def test_different_calls_with_one_short_result_are_quiet(act: Act, play: Play) -> None:
    steps = [act("get_order", '{"status": "delivered"}', order=f"W{n}") for n in range(6)]
    assert kinds(play, steps) == set()


def test_five_searches_that_find_nothing_are_a_loop_whatever_their_words(act: Act, play: Play) -> None:
    words = ("winter timetable", "night ferry", "harbour master", "crossing fares", "island bus")
    assert "reworded" in kinds(play, [act("search", "No results.", query=asked) for asked in words])


def test_a_long_result_that_mentions_a_timeout_is_no_timeout(act: Act) -> None:
    text = "def fetch(url, timeout=30):\n" + "    # one more line of the program\n" * 20
    assert not features_of(act("read_file", text, path="client.py"), 0).passing


def test_the_same_complaint_about_steps_without_a_call_is_no_repeated_call(play: Play) -> None:
    complaint = Step(
        thought="Now I search.", tool_results=(ToolResult(call_id="", output="Error: no action was given."),)
    )
    said = [evaluation.intervention_text or "" for evaluation in play([complaint] * 6)]
    assert not any("You have called" in text for text in said)


def test_changes_whose_results_show_what_is_there_now_are_quiet(act: Act, fired: Fired) -> None:
    shown = "Edit was successful. Here is the file from line {0}:\n" + "{0} = rows[{0}] if leap{0} else days{0}\n" * 6
    steps = [act("edit_file", shown.format(n), path="parser.py", line=n) for n in range(100, 107)]
    assert fired(steps) == set()


def test_a_programs_message_after_its_name_is_an_error(act: Act) -> None:
    assert features_of(act("bash", "mv: cannot move 'a' to a folder in itself", command="mv a a/b"), 0).failing


# --- pictures


def shot(act: Act, picture: bytes) -> Step:
    return act("screenshot", output_of([forms(picture)["anthropic"]]))


def test_the_same_screenshot_is_the_same_result_and_another_one_is_not(act: Act) -> None:
    one, again, *others = (features_of(shot(act, picture), 0).result for picture in (b"1", b"1", b"2", b"3", b"4"))
    assert one == again
    assert len({one, *others}) == 4


def test_a_screen_that_changes_is_watched_in_peace(act: Act, fired: Fired) -> None:
    assert fired([shot(act, str(at).encode()) for at in range(8)]) == set()


def test_looking_again_at_the_same_screen_is_a_loop(act: Act, fired: Fired) -> None:
    assert "semantic_loop" in fired([shot(act, b"1")] * 8)
