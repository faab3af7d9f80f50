"""Roots: the check names a setting and neither root, and a change in the wrong one has no effect."""

from __future__ import annotations

import pytest
from _outcome.environment import Call, ToolError
from _outcome.policies import outcome
from _outcome.tasks.roots import VALUES, WORDINGS, Roots

SEEDS = range(60)


def first_failure(seed: int) -> tuple[Roots, str, list[str], Call]:
    """Return the environment, the check's result, the paths from the named root's on, and the policy's change."""
    roots = Roots()
    task = roots.reset(seed)
    said = roots.call("check", {})
    while (call := roots.reference()) and call.name != "set":
        outcome(roots, call)
    assert call is not None
    paths = sorted(roots.choices()["set.path"], key=lambda path: f" {path.partition('/')[0]}/ " not in task)
    return roots, said, paths, call


def test_the_check_names_the_setting_and_neither_root() -> None:
    words = set()
    for seed in SEEDS:
        _, said, paths, call = first_failure(seed)
        assert call.arguments["key"] in said
        assert call.arguments["value"] in said
        assert not any(path.partition("/")[0] in said.split() for path in paths)
        words.add(said.replace(call.arguments["key"], "").split(" ")[0])
    assert len(words) == len(WORDINGS)


def test_the_first_setting_that_fails_can_be_changed_in_the_named_root_without_effect() -> None:
    for seed in SEEDS:
        roots, said, (named, other), call = first_failure(seed)
        change = {"key": call.arguments["key"], "value": call.arguments["value"]}
        for _ in range(3):
            roots.call("set", {"path": named, **change})
            assert roots.call("check", {}) == said
        roots.call("set", {"path": other, **change})
        assert roots.call("check", {}) != said


def test_the_policy_changes_the_file_with_the_value_that_the_check_found() -> None:
    for seed in SEEDS:
        _, said, (named, other), call = first_failure(seed)
        values = [word.strip(",.()") for word in said.split()]
        finds = len([value for value in VALUES[call.arguments["key"]] if value in values]) == 2
        assert call.arguments["path"] == (other if finds else named)


def test_a_setting_that_does_not_exist_is_refused_with_those_that_do() -> None:
    roots, _, _, call = first_failure(0)
    with pytest.raises(ToolError, match=f"Settings: .*{call.arguments['key']}"):
        roots.call("set", {**call.arguments, "key": "roof"})
