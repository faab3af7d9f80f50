"""Work that looks like trouble and is none: no monitor fires."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reasonblocks.types import Evaluation, Step

Act = Callable[..., Step]
Fired = Callable[[Sequence[Step]], set[str]]
Play = Callable[..., "list[Evaluation]"]


def test_polling_that_makes_progress_is_quiet(act: Act, fired: Fired) -> None:
    steps = [act("job_status", f'{{"done": {percent}}}', job="42") for percent in range(0, 100, 10)]
    assert fired(steps) == set()


def test_polling_a_job_that_still_runs_is_quiet(act: Act, fired: Fired) -> None:
    assert fired([act("job_status", "RUNNING", job="42") for _ in range(7)]) == set()


def test_edit_then_the_same_test_with_changing_failures_is_quiet(act: Act, fired: Fired) -> None:
    steps: list[Step] = []
    for left in range(6, 0, -1):
        steps.append(act("edit_file", "ok", path="parser.py", old=f"a{left}", new=f"b{left}"))
        steps.append(act("run_tests", f"{left} failed: test_leap_{left}", is_error=True, path="tests"))
    assert fired(steps) == set()


def test_the_same_edit_over_twelve_files_is_quiet(act: Act, fired: Fired) -> None:
    steps = [act("edit_file", "File updated.", path=f"src/module_{n}.py", old="foo", new="bar") for n in range(12)]
    assert fired(steps) == set()


def test_a_file_read_in_chunks_is_quiet(act: Act, fired: Fired) -> None:
    steps = [act("read_file", f"lines from {at}", path="big.py", offset=at) for at in range(0, 4000, 200)]
    assert fired(steps) == set()


def test_a_list_of_similar_items_is_quiet(act: Act, fired: Fired) -> None:
    steps = [act("get_order", '{"status": "delivered"}', order=f"#W{n}") for n in range(30)]
    assert fired(steps) == set()


def test_one_retry_after_an_error_is_quiet(act: Act, fired: Fired) -> None:
    steps = [act("fetch", "connection reset", is_error=True, url="u"), act("fetch", "<html>", is_error=False, url="u")]
    assert fired(steps) == set()


def test_one_retry_that_fails_like_before_is_told_nothing(act: Act, play: Play) -> None:
    steps = [act("fetch", "connection reset", is_error=True, url="u")] * 2 + [act("search", "a hit", query="q")]
    assert not any(found.inject for found in play(steps))


def test_reading_a_file_again_after_it_changed_is_quiet(act: Act, fired: Fired) -> None:
    steps: list[Step] = []
    for version in range(6):
        steps.append(act("read_file", f"version {version}", path="parser.py"))
        steps.append(act("edit_file", "ok", path="parser.py", new=f"version {version + 1}"))
    assert fired(steps) == set()


def test_reports_of_no_errors_are_quiet(act: Act, fired: Fired) -> None:
    reports = ["0 errors, 12 files checked", "No exception was raised", "error: none", "errors: 0"]
    steps = [act("deploy", text, thought="It was successful.", part=n) for n, text in enumerate(reports * 3)]
    assert fired(steps) == set()


def test_declaring_done_after_a_test_run_is_quiet(act: Act, fired: Fired) -> None:
    steps = [
        act("edit_file", "ok", path="parser.py", new="x"),
        act("bash", "3 passed", command="pytest -q"),
        Step(thought="The task is complete."),
    ]
    assert fired(steps) == set()


def test_a_detour_that_is_announced_is_quiet(act: Act, fired: Fired) -> None:
    steps = [
        act("read_file", "text", path="p", thought="The date parser rejects leap years, so that is where I look now.")
    ]
    for n in range(9):
        away = f"Before that I have to install version {n} of a package, because nothing else runs without it."
        steps.append(act("bash", f"installed {n}", command=f"pip install thing=={n}", thought=away))
    assert fired(steps) == set()


def test_an_agent_that_only_talks_is_quiet(fired: Fired) -> None:
    assert fired([Step(thought=f"Which of the {n} flights would you like?") for n in range(20)]) == set()
