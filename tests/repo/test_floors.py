"""The contracts of .importlinter cover every module. `./dev layers` checks them."""

from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
RULES = ConfigParser()
RULES.read(ROOT / ".importlinter", encoding="utf-8")
PORTS = "ports"
"""The lowest floor that may do I/O."""


def listed(contract: str, option: str) -> list[str]:
    return RULES[f"importlinter:contract:{contract}"][option].split("\n")[1:]


def modules_of(floor: str) -> set[str]:
    return {f"reasonblocks.{name.strip(' ()')}" for name in floor.replace(":", "|").split("|")}


def test_every_module_below_the_ports_is_held_to_be_pure() -> None:
    floors = listed("floors", "layers")
    below = floors[floors.index(PORTS) + 1 :]
    assert set(listed("pure", "source_modules")) == set().union(*map(modules_of, below))


def test_every_package_is_looked_at() -> None:
    packages = {path.name for path in ROOT.glob("packages/*/src/*") if (path / "__init__.py").exists()}
    assert packages <= set(RULES["importlinter"]["root_packages"].split())
