"""`reasonblocks patterns`: writing, trying and checking lessons."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasonblocks.patterns.starter import starter_patterns
from tests.workbench.cli.conftest import Command

THOUGHT = "The tests fail as before. I change the condition again and run them. They fail at the same line once more."
TEXTS = ("--field", "diagnosis=It fails.", "--field", "intervention=Print it.")
"""The fields without which no model is shown a lesson of tier e2."""
LESSON = {
    "id": "mine",
    "tier": "e2",
    "failure_type": "loop",
    "fields": {"diagnosis": "It fails.", "intervention": "Print the values.", "anti_pattern": "More edits."},
    "exemplars": [THOUGHT],
}
RULE = {"id": "rule", "tier": "e3", "fields": {"instruction": "Use the staging database, never the live one."}}
BAD = {"id": "bad", "tier": "e2"}
SHIPPED = len(starter_patterns())
OFF = sum(pattern.off for pattern in starter_patterns())


@pytest.fixture
def patterns(command: Command, tmp_path: Path) -> Command:
    """`patterns("list")`, on a store of the test's own."""
    store = str(tmp_path / "home" / "patterns.db")
    return lambda name, *argv: command("patterns", name, *argv, "--store", store)


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    def write(*patterns: object, name: str = "mine.jsonl") -> str:
        path = tmp_path / name
        path.write_text("".join(f"{json.dumps(one)}\n" for one in patterns), encoding="utf-8")
        return str(path)

    return write


def ids(done: Any) -> list[str]:
    return [one["id"] for one in done.objects]


def given(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_pattern_is_added_by_options(patterns: Command) -> None:
    texts = ("--field", "diagnosis=It fails.", "--field", "intervention=Print it.", "--field", "anti_pattern=Edits.")
    done = patterns("add", "--tier", "e2", "--failure-type", "loop", *texts, "--exemplar", THOUGHT, "--id", "mine")
    assert (done.code, done.out, done.err) == (0, "added mine\n", "")
    (found,) = patterns("list", "--yours", "--json").objects
    assert found["fields"] == {"diagnosis": "It fails.", "intervention": "Print it.", "anti_pattern": "Edits."}


def test_a_pattern_may_be_for_several_kinds_of_findings(patterns: Command) -> None:
    kinds = ("--kind", "error", "--kind", "retry")
    done = patterns("add", "--tier", "e2", "--failure-type", "loop", *kinds, *TEXTS, "--exemplar", THOUGHT, "--json")
    assert done.objects[0]["kinds"] == ["error", "retry"]


def test_a_kind_that_is_not_known_is_warned_of_and_the_pattern_is_added(patterns: Command) -> None:
    done = patterns("add", "--tier", "e2", "--failure-type", "loop", "--kind", "eror", *TEXTS, "--exemplar", THOUGHT)
    assert done.code == 0
    assert "did you mean 'error'?" in done.err


def test_a_field_may_be_within_another(patterns: Command) -> None:
    field = f"trigger_state.trajectory_description={THOUGHT}"
    done = patterns("add", "--tier", "e2", *TEXTS, "--field", field, "--json")
    assert done.objects[0]["fields"]["trigger_state"] == {"trajectory_description": THOUGHT}


def test_a_pattern_is_added_from_stdin(patterns: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, json.dumps(LESSON))
    assert patterns("add", "-").code == 0
    assert ids(patterns("list", "--yours", "--json")) == ["mine"]


def test_options_go_before_stdin(patterns: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, json.dumps(LESSON))
    (told,) = patterns("add", "-", "--id", "other", "--json").objects
    assert (told["id"], told["failure_type"]) == ("other", "loop")


@pytest.mark.parametrize(
    ("text", "said"), [("", "is not JSON"), ("[]", "must be one JSON object"), ("x" * 1_100_000, "at most 1,048,576")]
)
def test_what_stdin_has_to_hold_is_said(
    patterns: Command, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    given(monkeypatch, text)
    done = patterns("add", "-")
    assert done.code == 2
    assert said in done.err


def test_a_pattern_without_an_id_gets_one_by_its_content(patterns: Command) -> None:
    argv = ("add", "--tier", "e3", "--field", "instruction=Ask first.", "--replace", "--json")
    first, again = patterns(*argv).objects[0]["id"], patterns(*argv).objects[0]["id"]
    assert first.startswith("e3-")
    assert first == again


def test_an_id_that_is_taken_is_refused(patterns: Command) -> None:
    done = patterns("add", "--tier", "e3", "--id", "rb-error-first", "--field", "instruction=Ask first.")
    assert done.code == 1
    assert "--replace" in done.err


def test_tier_e1_belongs_to_the_default_org(patterns: Command) -> None:
    texts = ("--field", "observation=It fails.", "--field", "recommended_action=Print it.")
    (told,) = patterns("add", "--tier", "e1", *texts, "--exemplar", THOUGHT, "--id", "one", "--json").objects
    assert told["org_id"] == "default"


def test_what_to_look_at_again_is_said_at_once(patterns: Command) -> None:
    done = patterns("add", "--tier", "e3", "--field", "instruction=You must ask.", "--id", "ask")
    assert done.code == 0
    assert "ask: instruction: says 'must'" in done.err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--tier", "e2"), "give at least one text to match"),
        (("--field", "instruction=x"), "--tier=None: is missing"),
        (("--tier", "e3", "--field", "instruction"), "must be NAME=TEXT"),
        (("--tier", "e2", "--exemplar", "x", "--gate", "3"), "from 0 to 1"),
    ],
)
def test_what_cannot_be_added_is_a_usage_error(patterns: Command, argv: tuple[str, ...], said: str) -> None:
    done = patterns("add", *argv)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1


def test_the_patterns_of_a_file_are_added(patterns: Command, file: Callable[..., str]) -> None:
    done = patterns("import", file(LESSON, RULE))
    assert (done.code, done.out, done.err) == (0, "2 new, 0 replaced, 0 skipped\n", "")
    assert ids(patterns("list", "--yours", "--json")) == ["mine", "rule"]


def test_those_of_the_same_id_are_replaced(patterns: Command, file: Callable[..., str]) -> None:
    patterns("import", file(LESSON))
    done = patterns("import", file(LESSON, RULE), "--json")
    assert done.objects == [{"new": 1, "replaced": 1, "skipped": 0, "dry_run": False}]


def test_one_bad_line_keeps_all_out(patterns: Command, file: Callable[..., str]) -> None:
    path = file(LESSON, BAD, "text")
    done = patterns("import", path)
    assert (done.code, done.out) == (1, "")
    assert [line.split(": ")[0] for line in done.err.splitlines()[:2]] == [f"{path}:2", f"{path}:3"]
    assert patterns("list", "--yours", "--json").objects == []


def test_bad_lines_are_skipped_when_asked(patterns: Command, file: Callable[..., str]) -> None:
    done = patterns("import", file(LESSON, BAD), "--skip-bad")
    assert (done.code, done.out) == (0, "1 new, 0 replaced, 1 skipped\n")


def test_a_dry_run_adds_nothing(patterns: Command, file: Callable[..., str], tmp_path: Path) -> None:
    assert (
        patterns("import", file(LESSON), "--dry-run").out
        == "1 new, 0 replaced, 0 skipped: a dry run, nothing was added\n"
    )
    assert not (tmp_path / "home").exists()


def test_an_id_in_two_files_is_a_fault(patterns: Command, file: Callable[..., str]) -> None:
    done = patterns("import", file(LESSON), file(LESSON, name="other.jsonl"))
    assert done.code == 1
    assert "mine: this id is in" in done.err


@pytest.mark.parametrize("name", ["all.jsonl", "all.toml"])
def test_what_is_exported_is_imported_as_it_was(
    patterns: Command, command: Command, file: Callable[..., str], tmp_path: Path, name: str
) -> None:
    patterns("import", file(LESSON, RULE))
    patterns("remove", "rb-loop-waiting")
    out, other = str(tmp_path / name), str(tmp_path / "other.db")
    assert patterns("export", "--out", out).out == f"{out}: 3 patterns\n"
    assert command("patterns", "import", out, "--store", other).code == 0
    assert command("patterns", "list", "--json", "--store", other).out == patterns("list", "--json").out


def test_an_export_goes_to_stdout_as_json_or_toml_with_the_starter_library_when_asked(
    patterns: Command, file: Callable[..., str]
) -> None:
    patterns("import", file(RULE))
    (told,) = patterns("export").objects
    assert told["fields"] == RULE["fields"]
    assert patterns("export", "--toml").out.startswith('[[pattern]]\nid = "rule"\n')
    assert len(patterns("export", "--starter").objects) == SHIPPED + 1


def test_the_starter_library_is_listed_and_nothing_is_written(patterns: Command, tmp_path: Path) -> None:
    found = patterns("list", "--json").objects
    assert Counter(one["origin"] for one in found) == {"starter": SHIPPED - OFF, "starter, off": OFF}
    assert len(found) == SHIPPED
    assert not (tmp_path / "home").exists()


def test_a_list_is_narrowed(patterns: Command) -> None:
    found = patterns("list", "--tier", "e2", "--failure-type", "loop", "--json").objects
    assert {(one["tier"], one["failure_type"]) for one in found} == {("e2", "loop")}


def test_a_list_says_where_each_one_is_from(patterns: Command, file: Callable[..., str]) -> None:
    patterns("import", file(LESSON, {**RULE, "id": "rb-error-first"}))
    patterns("remove", "rb-loop-waiting")
    found = {one["id"]: one["origin"] for one in patterns("list", "--json").objects}
    assert [found[name] for name in ("mine", "rb-error-first", "rb-loop-waiting", "rb-loop-same-test")] == [
        "yours", "yours, over the starter's", "starter, off", "starter",
    ]  # fmt: skip


def test_an_org_sees_no_other_org_s(patterns: Command) -> None:
    patterns("add", "--tier", "e3", "--id", "acme-rule", "--org", "acme", "--field", "instruction=Ask first.")
    assert ids(patterns("list", "--yours", "--json")) == []
    assert ids(patterns("list", "--yours", "--json", "--org", "acme")) == ["acme-rule"]


def test_a_pattern_is_shown_as_a_file_and_as_a_model_reads_it(patterns: Command) -> None:
    lines = patterns("show", "rb-error-first").out.splitlines()
    assert lines[:2] == ["# from: starter", "[[pattern]]"]
    assert lines[-1].startswith("# | - After an error")


def test_a_pattern_that_is_not_there_is_said_with_the_nearest(patterns: Command) -> None:
    done = patterns("show", "rb-eror-first")
    assert (done.code, done.out) == (1, "")
    assert "did you mean 'rb-error-first'?" in done.err


def test_control_characters_reach_no_terminal(patterns: Command, file: Callable[..., str]) -> None:
    patterns("import", file({**RULE, "fields": {"instruction": "Ask \x1b[2J\u202efirst."}}))
    assert "\x1b" not in patterns("list").out + patterns("show", "rule").out


def test_a_search_says_what_a_run_would_be_told(patterns: Command, file: Callable[..., str]) -> None:
    patterns("import", file(LESSON))
    first = patterns("search", THOUGHT, "--json").objects[0]
    assert (first["id"], first["found"]) == ("mine", True)
    assert first["similarity"] > 0.9


def test_a_search_that_finds_nothing_names_the_nearest(patterns: Command) -> None:
    done = patterns("search", "The weather in Paris is lovely in spring.")
    assert (done.code, done.out) == (0, "")
    assert "nothing is found; the nearest is " in done.err


def test_a_search_shows_all_when_asked(patterns: Command) -> None:
    found = patterns("search", "The weather in Paris.", "--all", "--json").objects
    assert len(found) == sum(one.tier == "e2" for one in starter_patterns())
    assert [one["similarity"] for one in found] == sorted((one["similarity"] for one in found), reverse=True)


def test_a_shipped_lesson_waits_for_the_monitor_of_its_trouble(patterns: Command) -> None:
    said = next(one.exemplars[0] for one in starter_patterns() if one.id == "rb-loop-waiting")
    for asked, found, waits in (((), False, True), (("--failure-type", "loop"), True, False)):
        hits = {one["id"]: one for one in patterns("search", said, *asked, "--all", "--json").objects}
        assert (hits["rb-loop-waiting"]["found"], hits["rb-loop-waiting"]["waits"]) == (found, waits)


def test_a_search_is_narrowed_as_a_monitor_does(patterns: Command) -> None:
    found = patterns("search", THOUGHT, "--failure-type", "drift", "--all", "--json").objects
    assert {one["id"].split("-")[1] for one in found} == {"drift"}


def test_a_pattern_s_own_gate_counts(patterns: Command, file: Callable[..., str]) -> None:
    patterns("import", file({**LESSON, "gate_threshold": 1.0}))
    found = {one["id"]: one for one in patterns("search", THOUGHT + " Hm.", "--all", "--json").objects}
    assert (found["mine"]["gate"], found["mine"]["found"]) == (1.0, False)


def test_one_s_own_is_removed(patterns: Command, file: Callable[..., str]) -> None:
    patterns("import", file(LESSON))
    assert patterns("remove", "mine").out == "mine: removed\n"
    assert patterns("list", "--yours", "--json").out == ""


def test_a_shipped_one_is_switched_off_and_on(patterns: Command) -> None:
    assert patterns("remove", "rb-loop-waiting").code == 0
    assert "rb-loop-waiting" not in ids(patterns("search", THOUGHT, "--all", "--json"))
    assert patterns("restore", "rb-loop-waiting").out == "rb-loop-waiting: is on\n"
    assert "rb-loop-waiting" in ids(patterns("search", THOUGHT, "--all", "--json"))


def test_a_rule_that_is_off_by_default_is_switched_on_and_off(patterns: Command, file: Callable[..., str]) -> None:
    def origin() -> str:
        return next(str(one["origin"]) for one in patterns("list", "--json").objects if one["id"] == "rb-every-part")

    assert origin() == "starter, off"
    assert patterns("restore", "rb-every-part").out == "rb-every-part: is on\n"
    assert (origin(), ids(patterns("list", "--yours", "--json"))) == ("starter", ["rb-every-part"])
    assert patterns("restore", "rb-every-part").out == "rb-every-part: is not switched off\n"
    assert patterns("remove", "rb-every-part").out.startswith("rb-every-part: switched off")
    assert (origin(), ids(patterns("list", "--yours", "--json"))) == ("starter, off", [])
    assert patterns("remove", "rb-every-part").out == "rb-every-part: is off already\n"
    patterns("import", file({**RULE, "id": "rb-every-part"}))
    assert origin() == "yours, over the starter's"
    assert patterns("remove", "rb-every-part").out == "rb-every-part: yours is removed; that of the starter is off\n"


def test_one_s_own_pattern_that_is_off_is_switched_on_with_its_own_text(
    patterns: Command, file: Callable[..., str]
) -> None:
    own = [{**RULE, "id": name, "off": True} for name in ("rb-every-part", "rb-error-first", "mine")]
    patterns("import", file(*own))
    patterns("restore", "--all")
    found = {one["id"]: one for one in patterns("list", "--yours", "--json").objects}
    assert [found[one["id"]]["off"] for one in own] == [True] * 3
    patterns("restore", *[str(one["id"]) for one in own])
    found = {one["id"]: one for one in patterns("list", "--yours", "--json").objects}
    assert [found[one["id"]].get("off", False) for one in own] == [False] * 3
    assert [found[one["id"]]["fields"] for one in own] == [RULE["fields"]] * 3


def test_all_that_are_off_are_switched_on(patterns: Command) -> None:
    patterns("remove", "rb-loop-waiting")
    assert len(patterns("restore", "--all").out.splitlines()) == OFF + 1
    assert {one["origin"] for one in patterns("list", "--json").objects} == {"starter"}
    assert patterns("restore", "--all").out == ""


@pytest.mark.parametrize("given", [(), ("rb-loop-waiting", "--all")])
def test_what_to_switch_on_is_named_or_all(patterns: Command, given: tuple[str, ...]) -> None:
    done = patterns("restore", *given)
    assert done.code == 1
    assert "give --all" in done.err


def test_the_shipped_one_shows_again_when_one_s_own_is_removed(patterns: Command, file: Callable[..., str]) -> None:
    patterns("import", file({**RULE, "id": "rb-error-first"}))
    assert patterns("remove", "rb-error-first").out.endswith("the starter's shows again\n")
    assert "# from: starter\n" in patterns("show", "rb-error-first").out


def test_one_unknown_id_keeps_all_where_they_are(patterns: Command, file: Callable[..., str]) -> None:
    patterns("import", file(LESSON))
    assert patterns("remove", "mine", "nothing-like-it").code == 1
    assert ids(patterns("list", "--yours", "--json")) == ["mine"]


def test_a_good_file_has_nothing_to_look_at(patterns: Command, file: Callable[..., str]) -> None:
    done = patterns("check", file(LESSON, RULE), "--strict")
    assert (done.code, done.out) == (0, "nothing to look at\n")


def test_a_warning_is_a_problem_when_strict(patterns: Command, file: Callable[..., str]) -> None:
    path = file({**LESSON, "failure_type": "lop"})
    assert [patterns("check", path).code, patterns("check", path, "--strict").code] == [0, 1]


def test_what_cannot_be_used_is_a_problem_in_any_case(patterns: Command, file: Callable[..., str]) -> None:
    done = patterns("check", file(BAD), "--json")
    assert done.code == 1
    assert [(one["line"], one["error"]) for one in done.objects] == [(1, True)]


def test_a_check_names_the_line(patterns: Command, file: Callable[..., str]) -> None:
    path = file(RULE, {**LESSON, "failure_type": "lop"})
    assert patterns("check", path).out.startswith(f"{path}:2: mine: failure_type 'lop'")


def test_what_repeats_a_shipped_one_is_told(patterns: Command, file: Callable[..., str]) -> None:
    shipped = next(one for one in starter_patterns() if one.id == "rb-loop-waiting")
    path = file({**LESSON, "exemplars": list(shipped.exemplars)})
    assert "mine: is found by the same thoughts (1.00) as rb-loop-waiting" in patterns("check", path).out


def test_two_that_say_the_same_are_told(patterns: Command, file: Callable[..., str]) -> None:
    other = {
        **LESSON,
        "id": "other",
        "exemplars": ["I look for a hotel near the station and compare the three cheapest ones with each other."],
    }
    assert "mine: says the same as other" in patterns("check", file(LESSON, other)).out


def test_the_store_is_checked_without_a_file(patterns: Command, file: Callable[..., str]) -> None:
    patterns("import", file({**LESSON, "failure_type": "lop"}))
    assert patterns("check").out.startswith("mine: failure_type 'lop'")


def test_the_starter_library_alone_has_nothing_to_look_at(patterns: Command) -> None:
    assert patterns("check", "--strict").code == 0


def test_the_store_is_in_the_home_that_is_named(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path / "there"))
    assert command("patterns", "add", "--tier", "e3", "--id", "r", "--field", "instruction=Ask first.").code == 0
    assert (tmp_path / "there" / "patterns.db").exists()


def test_a_store_that_is_none_is_a_problem_in_one_line(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("no database", encoding="utf-8")
    done = command("patterns", "list", "--store", str(path))
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert path.read_text(encoding="utf-8") == "no database"


def test_it_works_as_a_process(tmp_path: Path) -> None:
    environment = {**os.environ, "REASONBLOCKS_HOME": str(tmp_path)}
    base = [sys.executable, "-m", "reasonblocks", "patterns"]

    def run(*argv: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*base, *argv], input=given, capture_output=True, text=True, check=False, env=environment, timeout=60
        )

    assert run("add", "-", given=json.dumps(LESSON)).stdout == "added mine\n"
    assert json.loads(run("search", THOUGHT, "--json").stdout.splitlines()[0])["id"] == "mine"


@pytest.mark.parametrize(
    ("tier", "given", "named"),
    [
        ("e2", ("diagnosis=It fails.",), "intervention=TEXT: without it no model is shown 'mine'"),
        ("e2", (), "diagnosis=TEXT and intervention=TEXT: without them no model is shown 'mine'"),
        ("e1", ("observation=It fails.",), "recommended_action=TEXT"),
        ("e3", ("instruction=\u200b",), "instruction=TEXT"),
    ],
)
def test_a_pattern_that_no_model_would_be_shown_is_not_added(
    patterns: Command, tier: str, given: tuple[str, ...], named: str
) -> None:
    texts = [part for text in given for part in ("--field", text)]
    done = patterns("add", "--tier", tier, "--exemplar", THOUGHT, "--id", "mine", *texts)
    assert (done.code, done.out) == (2, "")
    assert f"--field: give {named}" in done.err
    assert patterns("list", "--yours").out == "no pattern\n"


def test_a_pattern_of_a_file_that_no_model_would_be_shown_is_a_fault(
    patterns: Command, file: Callable[..., str]
) -> None:
    done = patterns("import", file(LESSON, {**LESSON, "id": "half", "fields": {"diagnosis": "It fails."}}))
    assert (done.code, done.out) == (1, "")
    assert "mine.jsonl:2: half: without intervention no model is shown it" in done.err


@pytest.mark.parametrize(
    ("option", "value"), [("--gate", "5"), ("--id", ""), ("--org", ""), ("--failure-type", ""), ("--kind", "")]
)
def test_a_wrong_option_is_named_as_it_was_typed(patterns: Command, option: str, value: str) -> None:
    done = patterns("add", "--tier", "e2", "--exemplar", THOUGHT, "--field", "diagnosis=It fails.", option, value)
    assert done.code == 2
    assert f"reasonblocks: {option}=" in done.err
