"""What the adapter says to someone who holds it wrong, and what it shows to someone who looks at it."""

from __future__ import annotations

from contextlib import closing
from typing import Any
from uuid import UUID

import pytest
from agents import SQLiteSession

from reasonblocks import ReasonBlocks
from reasonblocks.exceptions import ConfigError
from reasonblocks_openai_agents import openai_hooks, openai_model, openai_run_sync, steering_of
from tests.openai_agents.world import fixer, in_turn, looks, place, said, steering

# ------------------------------------------------------------ options of a wrong type

WRONG: list[dict[str, Any]] = [{"run_id": UUID(int=7)}, {"task": 3}, {"agent_name": 5}, {"metadata": {"k": {1, 2}}}]
every_wrong_option = pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: next(iter(wrong)))


@every_wrong_option
def test_a_run_refuses_an_option_of_a_wrong_type(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"^{next(iter(wrong))}"):
        openai_run_sync(ReasonBlocks(), fixer(), "Go on.", **wrong)


@every_wrong_option
def test_hooks_refuse_an_option_of_a_wrong_type(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"^{next(iter(wrong))}"):
        openai_hooks(ReasonBlocks(), **wrong)


@every_wrong_option
def test_a_model_refuses_an_option_of_a_wrong_type(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"^{next(iter(wrong))}"):
        openai_model(ReasonBlocks(), "own", **wrong)


def test_a_run_id_beside_the_snapshot_of_another_run_is_refused() -> None:
    rb = steering()
    with place(in_turn(*looks(1))) as here:
        kept = steering_of(here.run(rb, fixer(), run_id="first")).snapshot()
    with pytest.raises(ConfigError, match="run_id='second': the snapshot is of run 'first'"):
        openai_run_sync(rb, fixer(), "Go on.", run_id="second", snapshot=kept)


def test_a_session_whose_id_is_no_string_is_known_by_its_text() -> None:
    with closing(SQLiteSession("s")) as memory, place(in_turn(said())) as here:
        memory.session_id = 7  # type: ignore[assignment]  # as sessions of somebody's own have it
        run = steering_of(here.run(steering(), fixer(), session=memory))
    assert run.session.run.session_id == "7"
