"""The message line of what real tools print when they fail, and that they failed, by their text alone.

Each file of `messages` is the output of the tool and major version in its name, with the paths of the machine replaced;
`expected.tsv` has the line that says why, as judged by reading.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reasonblocks.account.calls import Kind
from reasonblocks.account.message import LINE, message_line
from reasonblocks.account.results import read_result
from reasonblocks.types import ToolResult

FOLDER = Path(__file__).parent / "messages"
EXPECTED = [tuple(row.split("\t")) for row in (FOLDER / "expected.tsv").read_text(encoding="utf-8").splitlines()]
SILENT = ("eslint-9-no-file.txt", "jest29-none.txt", "jest30-none.txt")
"""Outputs that only say that there was nothing to do: without a flag they are no failure."""
SHELL = Kind(frozenset(("run",)), shell=True, command="x")


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def test_every_output_has_its_line() -> None:
    assert {name for name, _ in EXPECTED} == {path.name for path in FOLDER.glob("*.txt")}


@pytest.mark.parametrize(("name", "line"), EXPECTED)
def test_the_line_that_says_why_is_found(name: str, line: str) -> None:
    assert message_line(read_result(ToolResult(call_id="c", output=text_of(name)), kind=SHELL).text) == line


@pytest.mark.parametrize("name", [name for name, _ in EXPECTED])
def test_a_failure_is_seen_by_its_text_alone(name: str) -> None:
    assert read_result(ToolResult(call_id="c", output=text_of(name)), kind=SHELL).failed is (name not in SILENT)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("NotImplementedError: \nthe case is not covered", "NotImplementedError: the case is not covered"),
        ("ValidationError: 1 validation error for find_hotel\nname\n  Input should be a valid string",
         "ValidationError: 1 validation error for find_hotel: name: Input should be a valid string"),
        ("\x1b[91merror\x1b[0m: bad", "error: bad"),
        ("WARNING: Unknown config ini key: dirs\n2 passed in 0.1s", ""),
    ],
)  # fmt: skip
def test_a_line_that_only_announces_the_message_goes_with_it(text: str, line: str) -> None:
    reading = read_result(ToolResult(call_id="c", output=text), kind=SHELL)
    assert (message_line(reading.text) if reading.failed else "") == line


def test_a_line_is_bounded() -> None:
    assert len(message_line("Error: " + "x" * 5_000)) == LINE


@pytest.mark.parametrize(
    "beside",
    [
        "/lib/a.py:759: SetuptoolsDeprecationWarning: old error form.",
        "*** Module error.py",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "Here's the contents of the requested error spans:",
    ],
)
def test_a_warning_with_its_place_a_wrapper_and_a_heading_are_never_the_message(beside: str) -> None:
    assert message_line(f"{beside}\nthe wheel could not be built\n{beside}") == "the wheel could not be built"
    assert message_line("E   DeprecationWarning: old form") == "E   DeprecationWarning: old form"


def test_a_long_result_without_a_complaint_has_no_message() -> None:
    assert message_line("\n".join(["app/views.py", "```", *[f"{n} x = {n}" for n in range(20)]])) == ""
    assert message_line("ripgrep stopped\nat status 2") == "ripgrep stopped"
