"""Calls that go to another model."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from . import _world as world
from ._checks import by_attempt
from ._harness import Harness


class RoutingScenarios:
    """Part of `ConformanceSuite`."""

    harness: ClassVar[Harness]

    def test_a_hard_run_is_routed_and_comes_back(self, mode: str) -> None:
        if self.harness.caps.routing == "none":
            pytest.skip("this framework cannot route")
        hard: dict[str, Any] = {"scorer": by_attempt({6: 0.1}, 0.7), "model_routing": {"SLOW": "strong-model"}}
        (ran,) = self.harness.run(world.client(**hard), world.looping(9), mode)
        assert [seen.model for seen in ran.seen] == ["agent-model"] * 5 + ["strong-model"] * 2 + ["agent-model"] * 2
        assert [entry.model_id for entry in ran.log] == [seen.model for seen in ran.seen]

    def test_a_model_that_cannot_be_built_leaves_the_steering(self, mode: str) -> None:
        if self.harness.caps.routing == "none":
            pytest.skip("this framework cannot route")
        client = world.client(scorer=lambda step: 0.7, model_routing={"SLOW": object()})
        (ran,) = self.harness.run(client, world.looping(9), mode)
        assert {seen.model for seen in ran.seen} == {"agent-model"}
        assert any(entry.fsm_state == "SLOW" and entry.intervention_texts for entry in ran.log)

    def test_an_agent_keeps_its_model_after_a_routed_run(self, mode: str) -> None:
        """A run that ends on a routed call leaves the agent unchanged: the next run begins with the agent's model."""
        if self.harness.caps.routing == "none":
            pytest.skip("this framework cannot route")
        client = world.client(scorer=lambda step: 0.7, model_routing={"SLOW": "strong-model"})
        for ran in self.harness.run(client, world.looping(7), mode, times=2):
            assert [seen.model for seen in ran.seen] == ["agent-model"] * 5 + ["strong-model"] * 2
            assert ran.agent_model in (None, "agent-model")
