"""The public names, and how little importing them costs."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import reasonblocks

HEAVY = ("httpx", "numpy", "qdrant_client", "grpc", "langchain", "langchain_core", "langgraph", "agents", "openai",
         "anthropic", "claude_agent_sdk", "rich", "pytest")  # fmt: skip
ROOT = Path(reasonblocks.__file__).parent


def public_modules() -> list[str]:
    """Every module without a leading underscore that has an `__all__`."""
    names = ["reasonblocks"]
    for found in pkgutil.walk_packages([str(ROOT)], "reasonblocks."):
        if not any(part.startswith("_") for part in found.name.split(".")[1:]):
            names.append(found.name)
    return [name for name in names if hasattr(importlib.import_module(name), "__all__")]


def own_names(name: str) -> set[str]:
    """Classes and functions that a module defines under public names."""
    module = importlib.import_module(name)
    public = {key: value for key, value in vars(module).items() if not key.startswith("_")}
    return {key for key, value in public.items() if callable(value) and getattr(value, "__module__", "") == name}


def listed(name: str) -> list[str]:
    return list(importlib.import_module(name).__all__)


def test_every_public_name_is_there() -> None:
    missing = [
        f"{name}.{one}" for name in public_modules() for one in listed(name)
        if not hasattr(importlib.import_module(name), one)
    ]  # fmt: skip
    assert missing == []


def test_a_public_name_is_listed_once() -> None:
    counted = {name: Counter(listed(name)) for name in public_modules()}
    assert [f"{name}.{one}" for name, counts in counted.items() for one, n in counts.items() if n > 1] == []


def test_every_public_definition_of_a_module_is_listed() -> None:
    assert [f"{name}.{one}" for name in public_modules() for one in sorted(own_names(name) - {*listed(name)})] == []


def test_dir_of_the_package_is_what_is_public() -> None:
    assert dir(reasonblocks) == sorted(reasonblocks.__all__)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = reasonblocks.Nothing


def test_a_star_import_gives_what_is_public() -> None:
    names: dict[str, object] = {}
    exec("from reasonblocks import *", names)
    assert set(names) - {"__builtins__"} == set(reasonblocks.__all__)


def loaded_after(code: str) -> set[str]:
    """Top-level modules of a fresh process after some code."""
    told = f"{code}\nimport sys, json\nprint(json.dumps(sorted(name.split('.')[0] for name in sys.modules)))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert loaded_after("import reasonblocks") & {*HEAVY, "pydantic", "asyncio", "sqlite3"} == set()


def test_importing_the_client_imports_nothing_heavy() -> None:
    assert loaded_after("from reasonblocks import ReasonBlocks") & set(HEAVY) == set()


STEP = """
from reasonblocks import ReasonBlocks, Step, StepInput
rb = ReasonBlocks()
session = rb.session()
import sys
before = set(sys.modules)
session.begin_step(StepInput())
session.begin_step(StepInput(completed=Step(thought="maybe an error")))
session.finish()
print(sorted(set(sys.modules) - before))
"""


def test_a_step_imports_no_module_that_the_client_has_not_imported() -> None:
    done = subprocess.run([sys.executable, "-c", STEP], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_the_states_can_be_imported_from_types() -> None:
    from reasonblocks.types import FSMState

    assert FSMState is reasonblocks.FSMState
