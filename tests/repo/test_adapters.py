"""The core says rightly which of our packages brings which method of `rb`."""

from __future__ import annotations

from pathlib import Path

from reasonblocks._files import loads
from reasonblocks.adapters import ADAPTERS

ROOT = Path(__file__).parents[2]
GROUP = "reasonblocks.adapters"


def offered() -> dict[str, str]:
    """Method to distribution, as the packages' entry points have it."""
    found: dict[str, str] = {}
    for path in ROOT.glob("packages/*/pyproject.toml"):
        project = loads(path.read_text(encoding="utf-8"))["project"]
        found.update(dict.fromkeys(project.get("entry-points", {}).get(GROUP, ()), project["name"]))
    return found


def test_the_core_knows_which_package_brings_which_method() -> None:
    assert offered() == ADAPTERS
