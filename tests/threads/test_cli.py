"""The command `reasonblocks-threads`: a person in another process, who has none of the agents' code."""

from __future__ import annotations

import getpass
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from reasonblocks_threads import Cause, Phase
from reasonblocks_threads.cli import main
from tests.threads.driver import Clock, Driver

HOSTILE = "Deploy?\x1b[2J\u202e\nAnswers:\n  approve"


@dataclass
class Command:
    """The command with the file of a driver; each call returns its exit code and output."""

    driver: Driver
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self.capsys.readouterr()
        code = main(["--db", str(self.driver.database), *arguments])
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def ok(self, *arguments: str) -> str:
        code, out, err = self(*arguments)
        assert (code, err) == (0, "")
        return out

    def json(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.ok("--json", *arguments).splitlines()]


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    with Driver(tmp_path / "threads.db", clock=Clock(time.time())) as driver:
        yield driver


@pytest.fixture
def command(driver: Driver, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(driver, capsys)


def test_a_missing_command_or_file_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([]) == 2
    missing = tmp_path / "mistyped.db"
    assert main(["list", "--db", str(missing)]) == 2
    assert "--db" in capsys.readouterr().err
    assert not missing.exists()
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path))
    assert main(["list"]) == 2
    assert "name the file that your `Threads` use" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


def test_list_shows_live_threads_with_their_open_cards(driver: Driver, command: Command) -> None:
    waiting = driver.reach("awaiting_confirmation")
    ended = driver.reach("dismissed")
    table = command.ok("list")
    assert f"{waiting.id}.{waiting.entered}" in table
    assert waiting.cause.title in table
    assert ended.id not in table
    assert {each["id"] for each in command.json("list", "--all")} == {waiting.id, ended.id}
    (found,) = command.json("list", "--phase", "dismissed", "--all")
    assert found["phase"] == "dismissed"
    code, out, err = command("list", "--run", "run-9")
    assert (code, out, err) == (0, "", "no such thread is live; --all shows those that have ended\n")
    assert command("list", "--all", "--run", "run-9") == (0, "", "there is no such thread\n")


def test_an_unknown_phase_names_the_valid_ones(command: Command) -> None:
    code, out, err = command("list", "--phase", "waiting")
    assert (code, out) == (2, "")
    assert "awaiting_confirmation" in err
    assert err.count("\n") == 1


def test_show_prints_the_open_card_and_the_log(driver: Driver, command: Command) -> None:
    thread = driver.reach("awaiting_confirmation")
    card = f"{thread.id}.{thread.entered}"
    shown = command.ok("show", thread.id)
    assert command.ok("show", card) == shown
    assert "May this run?" in shown
    assert "  approve " in shown
    log = command.ok("show", thread.id, "--log")
    assert log.startswith(shown)
    assert "  thread_opened  agent agent  " in log
    values = command.json("show", thread.id, "--log")
    assert values[0]["phase"] == "awaiting_confirmation"
    assert [each["seq"] for each in values[1:]] == [*range(1, thread.version + 1)]


def test_an_unknown_id_is_refused(command: Command) -> None:
    for arguments in (["show", "th_none"], ["answer", "th_none", "approve"], ["answer", "th_none.7", "approve"]):
        code, out, err = command(*arguments)
        assert (code, out) == (1, "")
        assert "th_none" in err
        assert err.count("\n") == 1


def test_an_answer_goes_in_the_log_with_the_login_name_and_the_work_is_left_to_its_process(
    driver: Driver, command: Command
) -> None:
    thread = driver.reach("awaiting_confirmation")
    out = command.ok("answer", f"{thread.id}.{thread.entered}", "approve")
    assert out.splitlines()[0].startswith(f"{thread.id}  executing")
    assert "it continues in a process that has the code it needs" in out
    assert driver.hands.calls == []
    (approved,) = [event for event in driver.threads.log(thread.id) if event.kind == "action_approved"]
    assert (approved.actor.kind, approved.actor.name) == ("person", getpass.getuser())
    driver.clock.now = time.time()
    driver.drain()
    assert driver.get(thread.id).phase is Phase.DONE
    assert len(driver.hands.calls) == 1


def test_a_second_answer_is_refused_and_says_who_was_first(driver: Driver, command: Command) -> None:
    thread = driver.reach("awaiting_confirmation")
    card = f"{thread.id}.{thread.entered}"
    command.ok("answer", card, "reject", "--by", "mara", "--reason", "too late")
    code, out, err = command("answer", card, "approve")
    assert (code, out) == (1, "")
    assert "mara answered 'reject'" in err
    code, _, err = command("answer", thread.id, "approve")
    assert code == 1
    assert "no card is open; the phase is 'dismissed'" in err


def test_an_answer_that_the_card_does_not_offer_is_refused(driver: Driver, command: Command) -> None:
    thread = driver.reach("awaiting_confirmation")
    code, _, err = command("answer", thread.id, "retry")
    assert code == 1
    assert "offers: approve, edit, reject" in err
    assert driver.get(thread.id).version == thread.version
    assert command("answer", thread.id, "yes")[0] == 2


def test_an_approval_names_the_card_that_was_seen(driver: Driver, command: Command) -> None:
    thread = driver.reach("awaiting_confirmation")
    code, _, err = command("answer", thread.id, "approve")
    assert code == 1
    assert driver.card(thread.id).id in err
    assert driver.get(thread.id).version == thread.version


def test_a_thread_stands_for_its_open_card_and_the_next_one_is_shown(driver: Driver, command: Command) -> None:
    thread = driver.reach("awaiting_confirmation")
    out = command.ok("answer", thread.id, "edit", "--set", "n=4")
    assert "| n = 4" in out
    assert '| how = "ok"' in out
    assert driver.card(thread.id).parameters == {"how": "ok", "n": 4}
    (said,) = command.json("answer", thread.id, "edit", "--set", "how=7")
    card = driver.card(thread.id)
    assert said == {"thread": thread.id, "phase": "awaiting_confirmation", "stage": "action", "card": card.id,
                    "version": driver.get(thread.id).version, "reason": driver.get(thread.id).reason,
                    "done": said["done"]}  # fmt: skip
    assert card.parameters == {"how": "7", "n": 4}


def test_a_value_that_is_wrong_is_refused(driver: Driver, command: Command) -> None:
    thread = driver.reach("awaiting_confirmation")
    card = driver.card(thread.id)
    for pair in ("force=true", "n=many"):
        assert command("answer", thread.id, "edit", "--set", pair)[0] in (0, 1)
    assert card.parameters == {"how": "ok", "n": 0}
    assert command("answer", thread.id, "edit", "--set", "n")[0] == 2


def test_fields_that_an_answer_needs_are_asked_for(driver: Driver, command: Command) -> None:
    thread = driver.reach("awaiting_confirmation")
    code, _, err = command("answer", thread.id, "take_over")
    assert code == 2
    assert "--to: is needed for 'take_over'" in err
    out = command.ok("answer", thread.id, "take_over", "--to", "the team", "--reason", "we know it")
    assert out.startswith(f"{thread.id}  handed_off")


def test_later_hides_the_card(driver: Driver, command: Command) -> None:
    thread = driver.reach("awaiting_confirmation")
    assert command("answer", thread.id, "later", "--until", "soon")[0] == 2
    before = time.time()
    command.ok("answer", thread.id, "later", "--until", "2d")
    until = driver.get(thread.id).deferred_until
    assert until is not None
    assert 0 <= until - before - 2 * 86_400 < 60
    date = datetime.fromtimestamp(int(before) + 100 * 86_400, timezone.utc)
    command.ok("answer", thread.id, "later", "--until", date.strftime("%Y-%m-%dT%H:%M:%SZ"))
    assert driver.get(thread.id).deferred_until == date.timestamp()


def test_words_and_a_stage_go_with_a_redirect(driver: Driver, command: Command) -> None:
    thread = driver.reach("awaiting_confirmation")
    command.ok("answer", thread.id, "redirect", "--stage", "intent", "--text", "the goal is another one")
    after = driver.get(thread.id)
    assert (after.phase.value, after.stage.value) == ("awaiting_inference", "intent")
    assert [fact.text for fact in after.facts] == ["the goal is another one"]


def test_an_action_can_be_picked(driver: Driver, command: Command) -> None:
    thread = driver.reach("awaiting_action_clarification")
    command.ok("answer", thread.id, "provide", "--action", "tidy", "--set", "n=3")
    card = driver.card(thread.id)
    assert (card.action, card.parameters) == ("tidy", {"how": "ok", "n": 3})


def test_accept_on_a_failed_clean_up_accepts_the_failure(driver: Driver, command: Command) -> None:
    thread = driver.reach("done_cleanup_unsuccessful")
    command.ok("answer", thread.id, "accept")
    assert driver.get(thread.id).phase is Phase.DONE


def test_watch_prints_events_by_position_and_the_cards_that_open(driver: Driver, command: Command) -> None:
    thread = driver.reach("awaiting_confirmation")
    events = command.json("watch", "--after", "0", "--once")
    assert [event["seq"] for event in events] == [*range(1, thread.version + 1)]
    assert command.ok("watch", "--once") == ""
    last = command.ok("watch", "--once", "--after", str(events[-2]["position"]))
    assert last.endswith(f"card {thread.id}.{thread.entered}\n")
    assert last.count("\n") == 1


def test_ctrl_c_ends_watch(driver: Driver, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", press)
    assert command("watch") == (130, "", "")


def test_watch_prints_each_event_once(driver: Driver, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events come while it sleeps."""
    phases = iter(["proposed", "awaiting_inference"])

    def sleep(seconds: float) -> None:
        if (phase := next(phases, None)) is None:
            raise KeyboardInterrupt
        driver.reach(phase)

    monkeypatch.setattr(time, "sleep", sleep)
    driver.reach("proposed")
    code, out, _ = command("--json", "watch", "--every", "2")
    assert code == 130
    assert [event["position"] for event in map(json.loads, out.splitlines())] == [
        event.position for event in driver.threads.feed()[1:]
    ]


def test_a_file_that_is_no_database_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("no database " * 100)
    assert main(["list", "--db", str(file)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("reasonblocks-threads: ")
    assert err.count("\n") == 1


def test_doctor_names_what_a_crash_left_and_repairs_it(driver: Driver, command: Command) -> None:
    thread = driver.reach("awaiting_inference")
    assert driver.database
    with closing(sqlite3.connect(driver.database)) as file, file:
        file.execute("DELETE FROM work")
    code, out, _ = command("doctor")
    assert code == 1
    assert thread.id in out
    assert all(finding["thread_id"] == thread.id for finding in command.json("doctor", "--repair"))
    assert command.ok("doctor") == "no problems found\n"
    assert command.ok("--json", "doctor", "--repair") == ""


def test_drain_does_what_needs_no_code(driver: Driver, command: Command) -> None:
    thread = driver.reach("proposed")
    assert command.json("drain") == [{"done": 1}]
    assert driver.get(thread.id).phase is Phase.AWAITING_INFERENCE
    assert command.ok("drain", "--limit", "5") == "0 work items done\n"


@pytest.mark.parametrize("arguments", [("list",), ("show", "ID", "--log"), ("watch", "--once", "--after", "0")])
def test_hostile_text_reaches_no_terminal(driver: Driver, command: Command, arguments: tuple[str, ...]) -> None:
    driver.mind.mood = {"intent": "low"}
    thread = driver.open(cause=Cause(kind="k\x1b[31m", key="k", title=HOSTILE, run_id="r\x9b31m"))
    driver.until(thread.id, "awaiting_intent_confirmation")
    given = [thread.id if each == "ID" else each for each in arguments]
    for line in command.ok(*given).splitlines():
        assert line.isprintable()
    for value in command.ok("--json", *given).split("\n"):
        assert value.isascii()
        assert value.isprintable()


def test_it_works_without_a_terminal(driver: Driver) -> None:
    thread = driver.reach("awaiting_confirmation")
    card = f"{thread.id}.{thread.entered}"
    command = [sys.executable, "-c", "from reasonblocks_threads.cli import main; raise SystemExit(main())"]
    done = subprocess.run(
        [*command, "--db", str(driver.database), "--json", "answer", card, "approve", "--by", "mara"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["phase"] == "executing"
