"""What is only recorded runs on, whatever its tools give back."""

from __future__ import annotations

import logging

import pytest
from agents import function_tool

from reasonblocks_openai_agents import openai_hooks
from tests.openai_agents.world import fixer, in_turn, looks, place, steering, whole_and_streamed


class Lazy:
    """Cannot be read any more, but for its text."""

    @property
    def text(self) -> str:
        raise LookupError("the connection is closed")

    def __str__(self) -> str:
        return "A row."


@function_tool(name_override="look")
def rows(path: str) -> Lazy:
    """Looks at a table."""
    return Lazy()


@whole_and_streamed
def test_a_result_that_cannot_be_read_is_said_and_the_run_goes_on(way: str, caplog: pytest.LogCaptureFixture) -> None:
    with place(in_turn(*looks(1)), way) as at, caplog.at_level(logging.WARNING, logger="reasonblocks"):
        result = at.plain(fixer(tools=[rows]), hooks=openai_hooks(steering(strict=False)))
        assert result.final_output == "All seen."
        assert "ending a tool" in caplog.text
