"""Each adapter brings its methods of `rb`, and refuses a core that was overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasonblocks.adapters import ADAPTERS
from reasonblocks.util.files import loads
from tests.foreign import failed, install_over_ours, refusal

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


@pytest.mark.parametrize("distribution", sorted({*ADAPTERS.values()}))
def test_an_adapter_refuses_a_product_that_has_overwritten_the_core(distribution: str, tmp_path: Path) -> None:
    code = f"import {distribution.replace('-', '_')}"
    assert failed(code, install_over_ours(tmp_path)) == refusal(tmp_path)
