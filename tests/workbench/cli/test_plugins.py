"""Commands of other packages: entry points of the group `reasonblocks.commands`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workbench.cli.conftest import Command

GREETS = """
from typing import Annotated
from typer import Option

def greet(loud: Annotated[bool, Option("--loud")] = False) -> int:
    'Say hello.'
    print("HELLO" if loud else "hello")
    return 3 if loud else 0
"""
KEEPS = """
import typer
keep = typer.Typer(help="Keep things.")

@keep.command("one")
def one() -> int:
    print("kept")
    return 0

@keep.command("two")
def two() -> int:
    return 1
"""
EVIL = "\x1b]0;pwned\x07\u202e"
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """`install("a-distribution", module_code, command="target")`: a package beside the installed ones."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def installed(distribution: str, code: str, **commands: str) -> None:
        module = distribution.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(code, encoding="utf-8")
        info = tmp_path / f"{module}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n", encoding="utf-8")
        points = "".join(f"{name} = {module}:{target}\n" for name, target in commands.items())
        (info / "entry_points.txt").write_text(f"[reasonblocks.commands]\n{points}", encoding="utf-8")
        monkeypatch.delitem(sys.modules, module, raising=False)

    return installed


def test_a_command_of_another_package_runs_and_is_listed(command: Command, install: Install) -> None:
    install("greeter-runs", GREETS, greet="greet")
    done = command("greet")
    assert (done.code, done.out, done.err) == (0, "hello\n", "")
    assert (command("greet", "--loud").code, command("greet", "--lout").code) == (3, 2)
    assert re.search(r"^ +greet +Say hello\.$", command("--help").out, re.MULTILINE)


def test_a_command_of_another_package_may_have_subcommands(command: Command, install: Install) -> None:
    install("keeper", KEEPS, keep="keep")
    done = command("keep", "one")
    assert (done.code, done.out, done.err) == (0, "kept\n", "")
    assert command("keep", "two").code == 1
    assert re.search(r"^ +keep +Keep things\.$", command("--help").out, re.MULTILINE)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise ImportError('no such library')", "ImportError: no such library"),
        ("raise RuntimeError", "RuntimeError"),
        ("greet = 1", "TypeError: 1 is no function and no Typer"),
        (f"raise OSError({EVIL!r})", "OSError: \ufffd]0;pwned\ufffd\ufffd"),
    ],
)
def test_a_broken_package_causes_a_warning_and_breaks_no_other_command(
    command: Command, install: Install, code: str, reason: str
) -> None:
    install("a-broken", code, greet="greet")
    install("b-works", GREETS.replace("greet", "wave"), wave="wave")
    done = command("--help")
    assert done.code == 0
    assert done.err == f"reasonblocks: the command 'greet' of a-broken is left out: {reason}\n"
    assert "wave" in done.out
    assert command("greet").code == 2


def test_a_package_cannot_take_a_command_of_ours(command: Command, install: Install) -> None:
    install("taker-of-replay", GREETS.replace("greet", "replay"), replay="replay")
    assert command("replay").code == 2  # it wants a file
    assert "the command 'replay' of taker-of-replay is left out: reasonblocks-workbench has it" in command("--help").err


def test_of_two_packages_with_one_command_the_first_by_name_has_it(command: Command, install: Install) -> None:
    install("second-greeter", GREETS.replace("hello", "second"), greet="greet")
    install("first-greeter", GREETS, greet="greet")
    done = command("greet")
    assert (done.out, done.err) == (
        "hello\n",
        "reasonblocks: the command 'greet' of second-greeter is left out: first-greeter has it\n",
    )


def test_a_command_of_the_core_loads_no_other_package(command: Command, install: Install) -> None:
    install("never-loaded", "raise SystemExit('was loaded')", other="other")
    done = command("doctor", "--json")
    assert (len(done.objects), "never-loaded" in done.err) == (1, False)


def test_a_package_that_exits_costs_the_list_only_its_command(command: Command, install: Install) -> None:
    install("exits", "raise SystemExit('was loaded')", other="other")
    done = command("--help")
    assert done.code == 0
    assert "replay" in done.out
    assert "the command 'other' of exits is left out: SystemExit: was loaded" in done.err


@pytest.mark.parametrize("argv", [("replay",), ("report",), ("explain",), ("calibrate",), ("patterns", "import")])
def test_the_help_shows_what_an_argument_is_and_not_its_type_in_python(command: Command, argv: tuple[str, ...]) -> None:
    done = command(*argv, "--help")
    assert done.code == 0
    assert re.search(r"^  (FILE|RUN)( .*)?$", done.out, re.MULTILINE)
    assert "<list" not in done.out
    assert "<str" not in done.out
