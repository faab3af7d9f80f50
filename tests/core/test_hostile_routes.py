"""A mapped model of the caller's that raises whatever is asked of it never stops a run from beginning."""

from __future__ import annotations

from typing import Any

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.engine.routing import model_name
from reasonblocks.exceptions import ConfigError
from reasonblocks.types import Step, StepInput


class Hostile:
    """Whatever is asked of it raises."""

    def _raises(self, *given: object) -> Any:
        raise LookupError("hostile")

    __class__ = property(_raises)
    __eq__ = __hash__ = __repr__ = __str__ = __bool__ = __len__ = __getattr__ = _raises


def test_a_session_begins_and_names_the_route_by_its_type() -> None:
    with ReasonBlocks(model_routing={"NORMAL": Hostile()}, strict=True) as rb:
        session = rb.session()
        session.begin_step(StepInput())
        assert session.begin_step(StepInput(completed=Step(thought="I look."))).route == "NORMAL"
    assert model_name(Hostile()) == "Hostile"


def test_an_error_about_what_cannot_be_printed_names_its_type() -> None:
    class Unprintable:
        def __repr__(self) -> str:
            raise LookupError("hostile")

    with pytest.raises(ConfigError, match="a value of type Unprintable"):
        ReasonBlocks(token_budget=Unprintable())  # type: ignore[arg-type]
