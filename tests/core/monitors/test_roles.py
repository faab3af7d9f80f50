"""How much of a tool's results a text may show, and which tools only look."""

from __future__ import annotations

import pytest

from reasonblocks.monitors.roles import looks_up, trust_of
from reasonblocks.types import JSON, ToolCall


def trust(name: str, arguments: JSON = "", **roles: str) -> str:
    return trust_of(ToolCall(id="c", name=name, arguments=arguments), roles)


@pytest.mark.parametrize("name", ["bash", "run_tests", "read_file", "listDir", "grep", "edit_file", "str_replace"])
def test_the_users_own_tools_may_be_quoted(name: str) -> None:
    assert trust(name) == "full"


@pytest.mark.parametrize("name", ["web_search", "fetch_url", "read_email", "list_slack_channels", "get_page", "issue"])
def test_tools_that_return_other_peoples_text_may_not(name: str) -> None:
    assert trust(name) == "none"


@pytest.mark.parametrize("name", ["oracle", "act", "payments"])
def test_of_an_unknown_tool_only_names_may_be_shown(name: str) -> None:
    assert trust(name) == "names"


@pytest.mark.parametrize(
    "arguments", [{"command": "curl -s example.com"}, {"command": "cd a; wget x"}, {"path": "https://example.com/a"}]
)
def test_a_command_that_fetches_returns_other_peoples_text(arguments: JSON) -> None:
    assert trust("bash", arguments) == "none"
    assert trust("bash", {"command": "cat curl.log"}) == "full"


@pytest.mark.parametrize("role", ["web", "mail", "chat"])
def test_a_role_goes_before_the_name(role: str) -> None:
    assert trust("read_file", read_file=role) == "none"
    assert trust("read_email", read_email="read") == "full"


@pytest.mark.parametrize(("name", "looks"), [("read_file", True), ("ls", True), ("grep", True), ("go", False)])
def test_a_tool_that_looks_up_works_from_anywhere(name: str, looks: bool) -> None:
    assert looks_up(name) is looks
