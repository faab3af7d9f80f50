"""docs/writing-an-adapter.md shows the template as it stands, and names all that an adapter meets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from textwrap import dedent

import pytest

import reasonblocks.adapters
from reasonblocks.types import AdapterCaps, StepInput, StepOutcome
from reasonblocks_testing import Harness

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "examples/adapter_template"
PAGE = (ROOT / "docs/writing-an-adapter.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(?:python|toml)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def passages() -> list[str]:
    """Parts of the blocks that stand together: a blank line stands for what is left out of a file."""
    return [part for block in BLOCKS for part in block.split("\n\n")]


def template() -> str:
    files = sorted(path for path in TEMPLATE.rglob("*") if path.suffix in (".py", ".toml"))
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


@pytest.mark.parametrize("passage", passages(), ids=lambda text: dedent(text).splitlines()[0])
def test_what_the_page_shows_stands_in_the_template(passage: str) -> None:
    assert passage.rstrip("\n") in template()


@pytest.mark.parametrize("kind", [StepInput, StepOutcome, AdapterCaps], ids=lambda kind: kind.__name__)
def test_the_page_names_every_field(kind: type) -> None:
    assert [field.name for field in fields(kind) if f"`{field.name}`" not in PAGE] == []


def test_the_page_names_the_whole_kit() -> None:
    assert [name for name in reasonblocks.adapters.__all__ if f"`{name}`" not in PAGE] == []


def test_the_parity_command_prints_what_the_page_shows() -> None:
    ((line, shown),) = re.findall(r"^```console\n\$ python (.*?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    path = os.pathsep.join([str(TEMPLATE / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *line.split()],
        cwd=TEMPLATE,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.stdout, done.returncode) == (shown, 0), done.stderr


def test_the_page_names_every_method_of_a_harness() -> None:
    methods = [name for name in (*vars(Harness), *Harness.__annotations__) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}" not in PAGE] == []
