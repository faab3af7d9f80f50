"""Where the provider is, and what the CLI is told instead."""

from __future__ import annotations

import pytest

from reasonblocks.exceptions import ConfigError
from reasonblocks_claude_agent.gateway._upstream import address, environment, proxy, refuse_elsewhere

GATEWAY = "http://127.0.0.1:1/secret"


@pytest.mark.parametrize("name", ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "ANTHROPIC_UNIX_SOCKET"])
def test_a_provider_that_no_gateway_stands_before_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        refuse_elsewhere({name: "1"})


def test_a_switch_that_is_off_refuses_nothing() -> None:
    off = {"CLAUDE_CODE_USE_BEDROCK": "0"}
    refuse_elsewhere(off)
    with pytest.raises(ConfigError) as refused:
        refuse_elsewhere({**off, "CLAUDE_CODE_USE_VERTEX": "1"})
    assert "BEDROCK" not in str(refused.value)


def test_the_provider_is_the_clis_own_unless_the_environment_names_one() -> None:
    named = address({"ANTHROPIC_BASE_URL": "https://llm.example/base/"})
    assert [address({}), named] == ["https://api.anthropic.com", "https://llm.example/base"]


def test_the_cli_is_told_that_its_own_provider_is_behind_the_gateway() -> None:
    assert "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL" in environment({}, GATEWAY)


def test_the_cli_is_told_nothing_more_before_anothers_provider() -> None:
    env = {"ANTHROPIC_BASE_URL": "https://llm.example"}
    assert environment(env, GATEWAY) == {"ANTHROPIC_BASE_URL": GATEWAY}


def test_the_cli_asks_the_gateway_past_its_proxy() -> None:
    env = {"HTTPS_PROXY": "http://proxy.example:8", "NO_PROXY": "intra.example"}
    assert environment(env, GATEWAY)["no_proxy"] == "intra.example,127.0.0.1"


def test_the_provider_is_asked_through_the_clis_proxy() -> None:
    assert proxy({"HTTPS_PROXY": "http://proxy.example:8"}) == "http://proxy.example:8"


def test_a_provider_that_is_spared_the_proxy_is_asked_directly() -> None:
    env = {"https_proxy": "http://proxy.example:8", "no_proxy": "api.anthropic.com"}
    assert proxy(env) is None
