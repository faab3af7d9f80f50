"""The contracts of .importlinter cover every module. `./dev layers` checks them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
RULES = ConfigParser()
RULES.read(ROOT / ".importlinter", encoding="utf-8")
IMPURE = {"reasonblocks.concurrency", "reasonblocks.ports", "reasonblocks.wire"}
"""Rooms beside pure ones: threads and locks, and the protocols and wire models of what does I/O."""


def listed(contract: str, option: str) -> list[str]:
    return RULES[f"importlinter:contract:{contract}"][option].split("\n")[1:]


def modules_of(floor: str) -> set[str]:
    return {f"reasonblocks.{name.strip(' ()')}" for name in floor.replace(":", "|").split("|")}


def test_the_core_has_at_most_nine_floors() -> None:
    assert len(listed("floors", "layers")) <= 9


def test_every_module_below_the_sessions_is_held_to_be_pure() -> None:
    floors = listed("floors", "layers")
    (sessions,) = (number for number, floor in enumerate(floors) if "reasonblocks.session" in modules_of(floor))
    below = set[str]().union(*map(modules_of, floors[sessions + 1 :]))
    assert set(listed("pure", "source_modules")) == below - IMPURE


def test_every_package_is_looked_at() -> None:
    packages = {path.name for path in ROOT.glob("packages/*/src/*") if (path / "__init__.py").exists()}
    assert packages <= set(RULES["importlinter"]["root_packages"].split())


SOURCES = {
    ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
    for source in ROOT.glob("packages/*/src")
    for path in source.rglob("*.py")
}
"""Every module of ours, by its name."""


def room_of(module: str) -> list[str]:
    """The package and the folder in it that a module is in; a module that is in no folder has only the package."""
    folder = ".".join(module.split(".")[:2])
    is_folder = folder in SOURCES and SOURCES[folder].name == "__init__.py"
    return module.split(".")[: 2 if is_folder else 1]


def imported_by(module: str) -> Iterator[str]:
    """Yield the modules of ours that a module imports."""
    package = module.split(".") if SOURCES[module].name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(SOURCES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in SOURCES)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            home = ".".join([*base, *([node.module] if node.module else [])])
            names = {f"{home}.{alias.name}" for alias in node.names}
            yield from (names & {*SOURCES}) or ({home} & {*SOURCES})


def test_a_module_that_another_room_imports_has_no_underscore() -> None:
    private = [
        (module, found)
        for module in SOURCES
        for found in imported_by(module)
        if room_of(found) != room_of(module) and any(part[0] == "_" for part in found.split(".")[1:])
    ]
    assert private == []
