"""What a result says."""

from __future__ import annotations

import pytest

from reasonblocks.monitors.outcome import error_digests, says_error, says_red, says_waiting

TRACE = 'Traceback (most recent call last):\n  File "/a/b.py", line {line}, in f\nValueError: bad value {value}\n'


@pytest.mark.parametrize(
    "text",
    [
        "Error: no such column",
        "error while reading",
        "ValueError: x",
        "bash: foo: command not found",
        "Failed to open x",
    ],
)
def test_an_announced_error_is_an_error(text: str) -> None:
    assert says_error(text)


@pytest.mark.parametrize(
    "text",
    [
        "0 errors",
        "No errors found",
        "no exception was raised",
        "error: none",
        "errors: 0",
        "Error handling is described",
        "",
    ],
)
def test_a_denied_error_is_none(text: str) -> None:
    assert not says_error(text)


def test_a_traceback_deep_in_the_text_is_an_error() -> None:
    assert says_error("ran 3 of 4\n" * 100 + TRACE.format(line=3, value=1))


def test_errors_that_differ_in_numbers_and_paths_are_the_same() -> None:
    assert (
        error_digests(TRACE.format(line=3, value=1))[0]
        == error_digests(TRACE.format(line=99, value=2).replace("/a/", "/z/"))[0]
    )


def test_errors_that_differ_in_words_are_different() -> None:
    assert error_digests("Error: no such column")[0] != error_digests("Error: no such table")[0]


def test_a_long_text_never_just_waits() -> None:
    assert not says_waiting("the server is running " * 50)


@pytest.mark.parametrize(
    "text",
    [
        "FAILED tests/test_a.py::test_b",
        "Check level FAILED: loud does not exist.",
        "tests/test_a.py::test_b FAILED",
        "2 failed, 1 passed",
    ],
)
def test_a_report_of_a_failure_is_red(text: str) -> None:
    assert says_red(text)


@pytest.mark.parametrize("text", ["0 FAILED", "FAILED: 0", "FAILED=0, PASSED=3", "3 passed", "no failures", "UNFAILED"])
def test_a_report_without_a_failure_is_not_red(text: str) -> None:
    assert not says_red(text)
