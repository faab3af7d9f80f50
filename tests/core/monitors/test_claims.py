"""The end of a run is doubted by the record of its changes and checks, and by nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from reasonblocks.monitors.suite import SuiteSettings, evaluate
from reasonblocks.types import Patience, Step
from tests.core.monitors.conftest import NO_ROLES, act, play, requests

DONE = Step(thought="The parser accepts leap years now.")
RED = "=== FAILURES ===\nE   ValueError: bad date\n1 failed, 3 passed in 0.2s"
GREEN = "4 passed in 0.2s"


def doubts(run: Sequence[Step], *, checks: bool = False, roles: Mapping[str, str] = NO_ROLES) -> dict[str, str]:
    """Return the doubts at the run's newest step."""
    found = play(run, patience=Patience(checks=checks), roles=roles)[-1]
    return {doubt.monitor: doubt.text for doubt in found.doubts}


def edit(at: int = 0) -> Step:
    return act("edit_file", "The file was updated.", path="parser.py", old=f"a{at}", new=f"b{at}")


def test_a_red_check_that_nothing_followed_is_doubted() -> None:
    run = [edit(), act("run_tests", RED, path="tests"), act("read_file", "text", path="a.py"), DONE]
    assert doubts(run) == {
        "claim_contradiction": "The newest check, 2 steps before this answer, failed, and no change was seen after it."
    }


def test_without_a_check_files_that_changed_are_doubted_of_an_agent_that_checks() -> None:
    assert doubts([edit(), DONE]) == {}
    assert doubts([edit(), DONE], checks=True) == {
        "verification_skip": "Files were changed, and no check was seen after that."
    }


@pytest.mark.parametrize(
    "answer",
    ["I ran the tests: 14 passed.", "I've run the test suite.", "All tests pass.", "We executed the unit tests."],
)
def test_a_check_that_was_claimed_and_never_ran_is_doubted(answer: str) -> None:
    ran = act("bash", "a.py  b.py", command="python show.py")
    assert [*doubts([ran, Step(thought=answer)])] == ["claim_contradiction"]
    tested = act("bash", GREEN, command="pytest -q")
    assert doubts([ran, tested, Step(thought=answer)]) == {}


def test_a_claim_is_not_doubted_of_an_agent_whose_editor_runs_the_tests() -> None:
    edits = act("edit_file", f"The file was updated.\n\nRunning 4 tests\n{GREEN}", path="a.py", old="a", new="b")
    assert doubts([edits, Step(thought="I ran the tests: 4 passed.")]) == {}


@pytest.mark.parametrize(
    "command",
    ["rm a.py", "cd src && rm a.py", "rm a.py b.py\nrm -rf tmp", "rm a.py; rmdir tmp", "rm -f a.py && rm b.py\n"],
)
def test_taking_files_away_needs_no_check(command: str) -> None:
    tested = act("bash", GREEN, command="pytest -q")
    assert doubts([edit(), tested, act("bash", "", command=command), DONE]) == {}
    patched = act("bash", "", command=f"{command}\nsed -i s/a/b/ parser.py")
    assert [*doubts([edit(), tested, patched, DONE])] == ["verification_skip"]


def test_a_claim_is_not_doubted_where_calls_are_not_seen() -> None:
    claim = Step(thought="I ran the tests: 14 passed.")
    resumed = requests([act("bash", "a.py", command="python show.py"), claim])[-1]
    account = replace(resumed.account, steps=1)  # the account began with the second step
    assert evaluate(replace(resumed, account=account), SuiteSettings())[0].doubts == ()


def test_only_the_end_of_a_run_is_doubted() -> None:
    run = [edit(), act("run_tests", RED, path="tests"), act("read_file", "text", path="a.py")]
    assert doubts(run) == {}
    assert all(not {"claim_contradiction", "verification_skip"} & {*found.fired} for found in play(run))


def test_a_doubt_fires_and_scores_and_is_no_text_of_its_own() -> None:
    found = play([edit(), act("run_tests", RED, path="tests"), DONE])[-1]
    assert (found.fired, found.kind, found.inject) == (("claim_contradiction",), "red", False)
    assert found.scores["claim_contradiction"] == 0.8


def test_roles_say_what_changes_what_checks_and_what_ends_a_run() -> None:
    valve = act("set_valve", "ok", path="plant-7/V2", state="closed")
    trial = act("dry_run", '{"pressure": 4.1, "alarms": []}', plant="p-7")
    end = act("hand_over", "Received.", plant="p-7")
    roles = {"set_valve": "change", "dry_run": "check", "hand_over": "finish"}
    assert [*doubts([trial, valve, end], roles=roles)] == ["verification_skip"]
    assert doubts([valve, trial, end], roles=roles) == {}
    assert doubts([trial, valve, end], roles={"set_valve": "change", "dry_run": "check"}) == {}
    assert doubts([trial, valve, end], roles={"set_valve": "change", "hand_over": "finish"}) == {}
