"""Options become the settings of `ReasonBlocks`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer import BadParameter

from reasonblocks import Budget, Escalate
from reasonblocks.exceptions import ConfigError
from reasonblocks_workbench.cli._main import command_of
from reasonblocks_workbench.cli.options import NOT_SETTABLE, OPTIONS, Settings, expand_options, setting_names
from tests.workbench.cli.conftest import Command, Write


def settings(*argv: str, over: str | None = None) -> dict[str, Any]:
    found: list[Settings] = []

    @expand_options
    def given(settings: Settings) -> int:
        found.append(settings)
        return 0

    command_of(given, "given").main(list(argv), standalone_mode=False)
    return found[0].read(over)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a module of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    return tmp_path


def test_nothing_given_leaves_every_default() -> None:
    assert settings() == {}


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--fsm", "slow_threshold=0.5", "--fsm", "slow_window=4"],
         {"fsm_thresholds": {"slow_threshold": 0.5, "slow_window": 4}}),
        (["--slow-threshold", "0.5", "--fsm", "fast_window=8"],
         {"fsm_thresholds": {"slow_threshold": 0.5, "fast_window": 8}}),
        (["--weight", "semantic_loop=0.9"], {"weights": {"semantic_loop": 0.9}}),
        (["--route", "SLOW=big=model"], {"model_routing": {"SLOW": "big=model"}}),
        (["--tool-role", "bash=edit"], {"tool_roles": {"bash": "edit"}}),
        (["--token-budget", "5000"], {"token_budget": 5000}),
        (["--budget", "calls=40,land_at=2"], {"budget": Budget(calls=40, land_at=2)}),
        (["--budget", "tools=search:10/fetch:2"], {"budget": Budget(tools={"search": 10, "fetch": 2})}),
        (["--budget", "cost_usd=0.5"], {"budget": Budget(cost_usd=0.5)}),
        (["--budget", "seconds=90.5"], {"budget": Budget(seconds=90.5)}),
        (["--budget", "tokens=9, tell_at=0.5/0.1, every_call=yes"],
         {"budget": Budget(tokens=9, tell_at=(0.5, 0.1), every_call=True)}),
        (["--escalate", "model=strong, after=0"], {"escalate": Escalate(model="strong", after=0)}),
        (["--second-look", "always"], {"second_look": "always"}),
        (["--no-e-traces"], {"e_traces_enabled": False}),
        (["--e-traces"], {"e_traces_enabled": True}),
        (["--e2-requires-signal", "--strict"], {"e2_requires_signal": True, "strict": True}),
        (["--placement", "tail", "--standing-rules", "run"], {"placement": "tail", "standing_rules": "run"}),
        (["--step-deadline-ms", "100"], {"step_deadline_ms": 100}),
        (["--task-profile", "qa", "--org-id", "o", "--project-id", "p"],
         {"task_profile": "qa", "org_id": "o", "project_id": "p"}),
        (["--calibration", "agent.toml"], {"calibration": "agent.toml"}),
        (["--scorer", "math:sqrt"], {"scorer": __import__("math").sqrt}),
    ],
)  # fmt: skip
def test_an_option_is_a_setting(argv: list[str], expected: dict[str, Any]) -> None:
    assert settings(*argv) == expected


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["--fsm", "slow_threshold"], "KEY=VALUE"),
        (["--fsm", "slow_threshold=much"], "'much' is not a number"),
        (["--slow-threshold", "much"], "much"),
        (["--token-budget", "1.5"], "1.5"),
        (["--scorer", "math"], "module:attribute"),
        (["--scorer", "no_such_module_here:x"], "cannot be imported"),
        (["--scorer", "math:no_such_name"], "cannot be imported"),
    ],
)
def test_a_bad_value_is_a_usage_error(argv: list[str], word: str) -> None:
    with pytest.raises(BadParameter, match=word):
        settings(*argv)


def test_a_reference_is_looked_for_where_the_command_runs(here: Path) -> None:
    (here / "mine_here.py").write_text("class Loud:\n    name = 'loud'\nloud = Loud()\n")
    assert [monitor.name for monitor in settings("--monitor", "mine_here:loud")["monitors"]] == ["loud"]


def test_a_class_is_called_without_arguments(here: Path) -> None:
    (here / "mine_class.py").write_text("class Store:\n    made = True\n")
    assert not isinstance(settings("--pattern-store", "mine_class:Store")["pattern_store"], type)


def test_the_file_is_read_by_the_names_in_python(write: Write) -> None:
    path = write("c.toml", "token_budget = 9", "[fsm_thresholds]", "slow_window = 4")
    assert settings("--config", path) == {"token_budget": 9, "fsm_thresholds": {"slow_window": 4}}


def test_an_option_goes_before_the_file_key_by_key(write: Write) -> None:
    path = write("c.toml", "token_budget = 9", "[fsm_thresholds]", "slow_window = 4", "fast_window = 8")
    assert settings("--config", path, "--fsm", "slow_window=3", "--token-budget", "5") == {
        "token_budget": 5,
        "fsm_thresholds": {"slow_window": 3, "fast_window": 8},
    }


def test_the_file_may_name_callables(write: Write) -> None:
    assert settings("--config", write("c.toml", 'scorer = "math:sqrt"')) == {"scorer": __import__("math").sqrt}


def test_a_reference_of_the_file_that_cannot_be_imported_is_said(write: Write) -> None:
    with pytest.raises(ConfigError, match="cannot be imported"):
        settings("--config", write("c.toml", 'scorer = "math:none"'))


@pytest.mark.parametrize(
    ("body", "name", "said"),
    [("1 / 0", "x", "ZeroDivisionError"), ("class X:\n    def __init__(self): raise ValueError('no')", "X", "no")],
)
def test_an_error_of_the_users_module_is_said(write: Write, here: Path, body: str, name: str, said: str) -> None:
    (here / "faulty_module.py").write_text(body)
    with pytest.raises(ConfigError, match=said):
        settings("--config", write("c.toml", f'scorer = "faulty_module:{name}"'))


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_bytes(b"\xef\xbb\xbftoken_budget = 9\n")
    assert settings("--config", str(path)) == {"token_budget": 9}


def test_an_unknown_name_in_the_file_gets_the_nearest_one(write: Write) -> None:
    with pytest.raises(ConfigError, match="did you mean 'token_budget'"):
        settings("--config", write("c.toml", "token_buget = 9"))


@pytest.mark.parametrize("name", sorted(NOT_SETTABLE))
def test_keys_and_servers_are_unknown_in_the_file(write: Write, name: str) -> None:
    with pytest.raises(ConfigError, match="unknown"):
        settings("--config", write("c.toml", f'{name} = "x"'))


def test_a_path_in_the_file_is_relative_to_the_file(write: Write, tmp_path: Path) -> None:
    path = write("c.toml", 'calibration = "agent.toml"', 'profile = "./profiles.db"')
    expected = {"calibration": str(tmp_path / "agent.toml"), "profile": str(tmp_path / "./profiles.db")}
    assert {name: str(Path(value)) for name, value in settings("--config", path).items()} == {
        name: str(Path(value)) for name, value in expected.items()
    }


def test_an_absolute_path_in_the_file_stays(write: Write, tmp_path: Path) -> None:
    given = str(tmp_path / "else" / "agent.toml")
    path = write("c.toml", f"calibration = '{given}'")
    assert settings("--config", path) == {"calibration": given}


def test_a_word_and_a_table_are_no_paths(write: Write) -> None:
    path = write("c.toml", 'profile = "own"', "[calibration]", "composite_fires = 0.4")
    assert settings("--config", path) == {"profile": "own", "calibration": {"composite_fires": 0.4}}


def test_a_second_file_overrides_the_first_key_by_key_and_options_override_both(write: Write) -> None:
    first = write("a.toml", "token_budget = 1", "[fsm_thresholds]", "slow_window = 1", "fast_window = 1")
    second = write("b.toml", "token_budget = 2", "[fsm_thresholds]", "fast_window = 2", "skip_window = 2")
    assert settings("--config", first, "--fsm", "skip_window=3", over=second) == {
        "token_budget": 2,
        "fsm_thresholds": {"slow_window": 1, "fast_window": 2, "skip_window": 3},
    }


FILE_ONLY = {"mode", "explore"}
"""Settings without an option, which only matter to a live run; a file that the live run reads may have them."""


def test_every_setting_of_the_client_is_an_option_or_left_out_on_purpose() -> None:
    options = {option.setting for option in OPTIONS}
    assert options <= setting_names()
    assert setting_names() - options <= FILE_ONLY


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("calls", "'calls' is not NAME=VALUE"),
        ("calls=6,calls=7", "'calls' is given twice"),
        ("cals=4", "'cals' is no field of budget"),
        ("calls=many", "'many' is not a whole number"),
        ("every_call=1", "'1' is not yes or no"),
    ],
)
def test_a_wrong_budget_is_refused_with_its_part(given: str, told: str) -> None:
    with pytest.raises(BadParameter, match=told):
        settings("--budget", given)


def test_a_file_has_a_budget_as_a_table_or_a_text(here: Path) -> None:
    (here / "a.toml").write_text("budget = {calls = 8, tell_at = [0.5]}")
    (here / "b.toml").write_text("budget = {cals = 8}")
    assert settings("--config", "a.toml")["budget"].calls == 8
    with pytest.raises(ConfigError, match=r"b\.toml: budget=.*'cals' is no field of budget"):
        settings("--config", "b.toml")


MINE = """
class Loud:
    name = failure_type = "loud"
    def observe(self, step, memory, run): return 0.0, None, ()
five = 5
"""


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--weight", "nope=1"], "--weight='nope=1': unknown; valid: claim_contradiction"),
        (["--fsm", "nope=1"], "--fsm='nope=1': unknown; valid: fast_threshold"),
        (["--fsm", "fast_window=8", "--fsm", "slow_threshold=9"], "--fsm='slow_threshold=9': must be in [0, 1]"),
        (["--slow-threshold", "9"], "--slow-threshold='9': must be in [0, 1]"),
        (["--slow-threshold", "0.1"],
         "--slow-threshold='0.1': fast_threshold=0.2 must be below slow_threshold=0.1"),
        (["--monitor", "mymodule"], "--monitor='mymodule': unknown; valid: MODULE:NAME"),
        (["--monitor", "typed_mine:five"], "--monitor='typed_mine:five': a monitor has name"),
        (["--monitor", "typed_mine:Loud", "--monitor", "typed_mine:Loud"],
         "--monitor='typed_mine:Loud': 'loud': a monitor of that name is there already"),
        (["--stop-when", "nope"], "--stop-when='nope': unknown; valid: stalled, over_budget, MODULE:NAME"),
        (["--stop-when", "over_budget"], "--stop-when='over_budget': needs a --token-budget"),
        (["--budget", "calls=0,every_call=yes"], "--budget='calls=0,every_call=yes': calls=0 must be an int from 1"),
        (["--budget", "tell_at=0.5"], "--budget='tell_at=0.5': must have calls, tokens, cost_usd, seconds or tools"),
        (["--escalate", "after=1"], "--escalate='after=1': must have a model or an effort"),
        (["--escalate", "model=m,dwell=0"], "--escalate='model=m,dwell=0': dwell=0 must be an int from 1"),
        (["--second-look", "nope"], "--second-look='nope': unknown; valid: doubt, unchecked, always"),
        (["--advisor", "typed_mine:five"], "--advisor='typed_mine:five': must be callable"),
        (["--scorer", "typed_mine:five"], "--scorer='typed_mine:five': must be callable"),
        (["--transition", "typed_mine:five", "--fsm", "slow_window=3"],
         "--fsm='slow_window=3': a transition of your own leaves no use for --fsm"),
        (["--pattern-store", "typed_mine:five"], "--pattern-store='typed_mine:five': must have a method"),
        (["--embedder", "typed_mine:five"], "--embedder='typed_mine:five': must have id"),
        (["--sink", "typed_mine:five"], "--sink='typed_mine:five': a sink has"),
        (["--on-injection", "typed_mine:five"], "--on-injection='typed_mine:five': must be callable"),
        (["--redact", "typed_mine:five"], "--redact='typed_mine:five': must be callable"),
        (["--patience", "9 of 9"], "--patience='9 of 9': must be one of '2 of 3'"),
        (["--profile", "nope"], "--profile='nope': unknown; valid: own, or the path of a file"),
        (["--calibration", "none.toml"], "--calibration='none.toml': cannot be read"),
        (["--calibration", "odd.toml"], "--calibration='odd.toml': difficulty_mean=7 must be a number in [0, 1]"),
        (["--placement", "x"], "--placement='x': unknown; valid: context"),
        (["--standing-rules", "x"], "--standing-rules='x': unknown; valid: first_call"),
        (["--route", "NOPE=x"], "--route='NOPE=x': unknown; valid: FAST"),
        (["--tool-role", "a=read", "--tool-role", "x=y"], "--tool-role='x=y': unknown; valid: ask"),
        (["--task-profile", "z"], "--task-profile='z': unknown; valid: coding"),
        (["--step-deadline-ms", "-1"], "--step-deadline-ms='-1': must be a number of milliseconds"),
        (["--token-budget", "-1"], "--token-budget='-1': must be an int from 1"),
        (["--org-id", ""], "--org-id='': must be a string that is not empty"),
        (["--project-id", ""], "--project-id='': must be a string that is not empty"),
        (["--config", "bad.toml"], "bad.toml: weights='nope': unknown"),
        (["--config", "bad.toml", "--weight", "semantic_loop=1"], "bad.toml: weights='nope': unknown"),
    ],
)  # fmt: skip
def test_an_error_names_the_option_as_it_was_typed(
    command: Command, write: Write, here: Path, argv: list[str], told: str
) -> None:
    (here / "typed_mine.py").write_text(MINE)
    (here / "odd.toml").write_text("difficulty_mean = 7")
    (here / "bad.toml").write_text("[weights]\nnope = 1")
    done = command("replay", write("a.jsonl", {"steps": [{"thought": "I look."}]}), *argv)
    assert (done.code, done.out) == (2, "")
    assert f"reasonblocks: {told}" in done.err


def test_an_error_names_the_side_of_a_comparison_or_the_option_that_overrides_it(
    command: Command, write: Write
) -> None:
    path, one, other = (
        write("a.jsonl", {"steps": [{"thought": "I look."}]}),
        write("a.toml"),
        write("b.toml", "patience = 5"),
    )
    assert f"reasonblocks: {other}: patience=5: " in command("replay", path, "--diff", one, other).err
    done = command("replay", path, "--diff", one, other, "--patience", "x")
    assert "reasonblocks: --patience='x': " in done.err
