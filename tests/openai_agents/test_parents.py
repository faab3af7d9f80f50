"""A run has a parent only where a tool of another one has started it."""

from __future__ import annotations

import asyncio

import pytest
from openai import BadRequestError

from reasonblocks.testing import Turn
from reasonblocks_openai_agents import openai_model, steering_of
from tests.openai_agents.world import fixer, looks, one_by_one, place, steering, whole_and_streamed


@whole_and_streamed
def test_a_run_that_failed_before_is_not_the_parent_of_the_next(way: str) -> None:
    failing = [looks(1)[0], Turn(error=LookupError("no such thing"))]
    with place(one_by_one(*failing, *looks(1)), way) as at:
        rb = steering()
        model = openai_model(rb, at.model("own"))

        async def one_after_another() -> str | None:
            with pytest.raises(BadRequestError):
                await at.aplain(fixer(model=model))
            result = await asyncio.create_task(at.arun(rb, fixer()))
            return steering_of(result).session.run.parent_run_id

        assert at.until(one_after_another()) is None
