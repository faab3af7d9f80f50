"""A mapped model of the caller's that raises whatever is asked of it costs the run its route, and nothing else."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from reasonblocks_openai_agents import openai_model, steering_of
from tests.openai_agents.world import every_way, fixer, in_turn, looks, place, steering


class Hostile:
    """Whatever is asked of it raises."""

    def _raises(self, *given: object) -> Any:
        raise LookupError("hostile")

    __class__ = property(_raises)
    __eq__ = __hash__ = __repr__ = __str__ = __bool__ = __len__ = __getattr__ = _raises


@every_way
def test_a_run_goes_on_steered_with_the_agents_own_model(way: str, caplog: pytest.LogCaptureFixture) -> None:
    with place(in_turn(*looks(3)), way) as here, caplog.at_level(logging.WARNING, "reasonblocks"):
        run = steering_of(here.run(steering(model_routing={"NORMAL": Hostile()}), fixer()))
        assert {entry.model_id for entry in run.step_log} == {"own"}
        assert here.guided[1]
    assert sum("cannot be built" in record.getMessage() for record in caplog.records) == 1


def test_so_does_a_steered_model() -> None:
    with place(in_turn(*looks(3))) as here:
        model = openai_model(steering(model_routing={"NORMAL": Hostile()}), here.model("own"))
        here.plain(fixer(model=model))
        assert {entry.model_id for entry in model.step_log} == {"own"}
        assert here.guided[1]
