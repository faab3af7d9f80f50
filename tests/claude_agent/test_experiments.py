"""A client in an experiment opens a gateway only if a run of its unit may be steered."""

from __future__ import annotations

import pytest

from reasonblocks.exceptions import ConfigError
from reasonblocks_claude_agent import SteeredClaudeClient
from tests.steered import steering


@pytest.mark.parametrize(("options", "is_opened"), [({"unit_id": "d"}, True), ({"unit_id": "a"}, False), ({}, True)])
def test_a_session_that_is_only_observed_has_no_gateway(options: dict[str, str], is_opened: bool) -> None:
    """Without a unit, each prompt's run is one, so that some of them may be steered."""
    steered = SteeredClaudeClient(steering(), mode="gateway", experiment_id="lessons", **options)  # type: ignore[arg-type]
    assert (steered._gateway is not None) == is_opened


@pytest.mark.parametrize("mode", ["steer", "observe"])
def test_an_experiment_chooses_the_mode(mode: str) -> None:
    with pytest.raises(ConfigError, match="an experiment chooses the mode"):
        SteeredClaudeClient(steering(), mode=mode, experiment_id="lessons")  # type: ignore[arg-type]
