"""Environments of a user's own are loaded by name, and what they lack is named."""

from __future__ import annotations

import itertools
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import outcome
import pytest
from _outcome.own_tasks import PARTS, check, load
from own_outcome_task import HOURS, Meeting

from reasonblocks.exceptions import ConfigError

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/own_outcome_task.py"


def refusal(factory: Callable[[], Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        check("tasks.py:Task", factory)
    return caught.value.rule


def with_(**members: Any) -> Callable[[], Any]:
    return type("Changed", (Meeting,), members)


def without(name: str) -> Callable[[], Any]:
    members = {key: value for key, value in vars(Meeting).items() if key not in (name, "__dict__", "__weakref__")}
    return type("Lacking", (), members)


# --- finding it


def test_a_file_is_found_from_where_the_command_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEV_CWD", str(ROOT / "docs"))
    factory = load("../examples/own_outcome_task.py:Meeting")
    assert factory is load(f"{EXAMPLE}:Meeting")
    assert factory().reset(1).startswith("Book a meeting of ")


def test_a_module_is_found_by_its_name() -> None:
    assert load("own_outcome_task:Meeting") is Meeting


def test_a_file_may_import_its_neighbour_and_hold_dataclasses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "own_neighbour", None)
    monkeypatch.delitem(sys.modules, "own_neighbour")
    (tmp_path / "own_neighbour.py").write_text("from own_outcome_task import Meeting\n")
    (tmp_path / "tasks.py").write_text(
        "from __future__ import annotations\nimport dataclasses, own_neighbour\n"
        "@dataclasses.dataclass\nclass Settings:\n    steps: int = 4\n"
        "def short():\n    task = own_neighbour.Meeting()\n    task.max_steps = Settings().steps\n    return task\n"
    )
    assert load(f"{tmp_path}/tasks.py:short")().max_steps == 4


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("Meeting", "FILE.py:FACTORY or MODULE:FACTORY"),
        (":Meeting", "FILE.py:FACTORY or MODULE:FACTORY"),
        ("nowhere.py:Meeting", "there is no file"),
        ("nowhere:Meeting", "there is no module 'nowhere'"),
        ("own_outcome_task:Meting", "'Meting' does not exist; own_outcome_task has: Meeting"),
        ("own_outcome_task:HOURS", "'HOURS' is not callable"),
    ],
)
def test_a_wrong_name_is_refused_with_the_valid_form(given: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(given)
    assert caught.value.value == given
    assert hint in caught.value.rule


def test_an_error_of_the_file_is_its_own_and_the_next_load_tries_again(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("import a_module_that_is_missing\n")
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_missing"):
        load(f"{file}:Meeting")
    file.write_text("from own_outcome_task import Meeting  # mended\n")
    assert load(f"{file}:Meeting") is Meeting


# --- checking it


@pytest.mark.parametrize("name", PARTS)
def test_a_missing_member_is_named_with_its_form(name: str) -> None:
    assert refusal(without(name)) == f"the Lacking that it returns lacks {PARTS[name].hint}"


def test_an_object_that_is_no_environment_lacks_everything() -> None:
    assert refusal(object).count(";") == len(PARTS) - 1


def test_an_attribute_may_be_set_by_reset() -> None:
    def reset(self: Any, seed: int) -> str:
        self.max_steps = 3
        return Meeting.reset(self, seed)

    late = without("max_steps")
    late.reset = reset  # type: ignore[attr-defined]
    check("tasks.py:Late", late)


def test_chance_that_is_not_of_the_seed_is_found() -> None:
    draw = random.Random(1)
    assert "random.Random(seed)" in refusal(with_(reset=lambda self, seed: f"Task {draw.random()}"))


def test_a_second_environment_has_to_agree_with_the_first() -> None:
    numbers = itertools.count()

    def made() -> Meeting:
        number = next(numbers)
        changed: Meeting = with_(reset=lambda self, seed: f"Task of environment {number}")()
        return changed

    assert "another message" in refusal(made)


@pytest.mark.parametrize(
    ("members", "hint"),
    [
        ({"reset": lambda self, seed: None}, "reset(0) has to return the user's message"),
        ({"system": None}, "system has to be a str"),
        ({"max_steps": 0}, "max_steps has to be an int of at least 1"),
        ({"tools": ()}, "tools is empty"),
        ({"tools": ("look",)}, "tools cannot be read (TypeError"),
        ({"tools": ({"function": {"name": "look"}},)}, "tools cannot be read (KeyError: 'parameters')"),
        ({"tools": Meeting.tools + Meeting.tools[:1]}, "two tools have one name"),
        ({"done": True}, "done is True after reset(0)"),
        ({"done": 0}, "done has to be True or False, not 0"),
        ({"success": lambda self: True}, "success() is True after reset(0)"),
        ({"success": lambda self: None}, "success() has to be True or False, not None"),
    ],
)
def test_a_wrong_member_is_named(members: dict[str, Any], hint: str) -> None:
    assert hint in refusal(with_(**members))


def test_environments_of_the_checks_are_closed() -> None:
    closed: list[Any] = []
    check("tasks.py:Task", with_(close=lambda self: closed.append(self)))
    assert len(closed) == 2


# --- the example


def test_the_example_is_won_by_asking_everybody_and_by_nothing_else() -> None:
    for seed in range(20):
        task = Meeting()
        message = task.reset(seed)
        people = message.removeprefix("Book a meeting of ").rstrip(".").split(", ")
        answers = [task.call("free_hours", {"person": name}) for name in people]
        (common,) = [
            hour for hour in HOURS if all(hour in answer.rstrip(".").split(" at ")[1].split(", ") for answer in answers)
        ]
        for hour in HOURS:
            if hour != common:
                with pytest.raises(Exception, match="is busy at"):
                    task.call("book", {"hour": hour})
        assert not task.done
        task.call("book", {"hour": common})
        assert (task.done, task.success()) == (True, True)


def test_the_environment_on_the_page_keeps_the_protocol() -> None:
    page = (ROOT / "docs/outcome.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    check("docs/outcome.md:Guess", names["Guess"])
    task = names["Guess"]()
    task.reset(4)
    assert [task.call("guess", {"number": number}) for number in ("3", "4")] == ["No.", "Found."]
    assert task.success()


def test_the_page_lists_every_option_and_no_other() -> None:
    page = (ROOT / "docs/outcome.md").read_text(encoding="utf-8")
    listed = page.split("\n## Options\n")[1].split("\n## ")[0]
    options = set(re.findall(r"--[a-z][a-z-]+", outcome.parser().format_help())) - {"--help"}
    assert set(re.findall(r"--[a-z][a-z-]+", page)) - {"--help"} == options
    assert set(re.findall(r"`(--[a-z-]+)", listed)) == options
