"""Loads environments of a user's own, and checks once that they keep the protocol."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from inspect import getsource
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

from reasonblocks.exceptions import ConfigError

from .environment import Closing, Environment

Factory: TypeAlias = Callable[[], Environment]

OPTION = "--tasks"
FORM = "give FILE.py:FACTORY or MODULE:FACTORY, where FACTORY() returns a new environment"
SEED = 0
"""The seed of the checks."""


class Part(NamedTuple):
    """A member of the protocol: how it is written, and whether it is a method."""

    hint: str
    method: bool


PARTS: Mapping[str, Part] = {
    "system": Part("system: str, the system message", False),
    "tools": Part("tools: Sequence[Tool], as `tool(name, description, argument=description)` makes them", False),
    "max_steps": Part("max_steps: int, the model calls after which a run ends", False),
    "reset": Part("reset(seed: int) -> str, which starts the task and returns the user's message", True),
    "call": Part("call(name: str, arguments: Mapping[str, Any]) -> str, which raises ToolError to refuse", True),
    "done": Part("done: bool, a property that is True once the task has ended", False),
    "success": Part("success() -> bool, which is True if the task is solved now", True),
}


def load(given: str) -> Factory:
    """Return the factory that `given` names, as "FILE.py:FACTORY" or "MODULE:FACTORY".

    A relative path starts where the command was called. Raises `ConfigError` if there is no such factory, and for the
    first thing that its environment lacks or does wrong: a missing member, tools that no chat API takes, another first
    message for the same seed, or a task that is over before it begins. Errors of the file itself are raised as they
    are.
    """
    factory = found(given)
    check(given, factory)
    return factory


def found(given: str) -> Factory:
    """Return the factory, unchecked. Raises `ConfigError` if there is none."""
    where, _, name = given.rpartition(":")
    if not where or not name:
        raise ConfigError(OPTION, given, FORM)
    module = module_of(given, where)
    factory = getattr(module, name, None)
    if not callable(factory):
        there = {key: value for key, value in vars(module).items() if callable(value) and not key.startswith("_")}
        own = sorted(key for key, value in there.items() if getattr(value, "__module__", "") == module.__name__)
        problem = "is not callable" if hasattr(module, name) else "does not exist"
        raise ConfigError(OPTION, given, f"{name!r} {problem}; {where} has: {', '.join(own) or 'no callables'}")
    return factory  # type: ignore[no-any-return]  # `check` looks at what it returns


def source(given: str) -> str:
    """Return the text of the file that has the factory, "" for none: rows of an edited task are told apart by it."""
    try:
        return getsource(module_of(given, given.rpartition(":")[0]))
    except (OSError, TypeError):  # a module without a file
        return ""


def module_of(given: str, where: str) -> ModuleType:
    """Import the file or the module."""
    return file_module(given, where) if where.endswith(".py") else named_module(given, where)


def file_module(given: str, where: str) -> ModuleType:
    """Import a file. It may import its neighbours, as a script does."""
    path = Path(os.environ.get("DEV_CWD", "."), where).resolve()
    if not path.is_file():
        raise ConfigError(OPTION, given, f"there is no file {str(path)!r}; {FORM}")
    name = f"outcome_tasks_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    sys.modules[name] = module  # dataclasses look for their module there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def named_module(given: str, where: str) -> ModuleType:
    """Import a module that is installed or on `PYTHONPATH`."""
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as exc:
        if exc.name is not None and (where == exc.name or where.startswith(f"{exc.name}.")):
            raise ConfigError(OPTION, given, f"there is no module {where!r}; {FORM}") from exc
        raise


def check(given: str, factory: Factory) -> None:
    """Reset an environment twice and another one once, and raise `ConfigError` for the first problem."""
    first, other = factory(), factory()
    try:
        problem = next(_problems(first, other), None)
    finally:
        for environment in (first, other):
            if isinstance(environment, Closing):
                environment.close()
    if problem is not None:
        raise ConfigError(OPTION, given, problem)


def _lacking(environment: object) -> list[str]:
    """Return the names of the protocol's members that are missing; also of a method that cannot be called."""
    present = dir(environment)  # `hasattr` would call properties, which may need a reset first
    return [
        name
        for name, part in PARTS.items()
        if name not in present or (part.method and not callable(getattr(environment, name)))
    ]


def _hints(environment: object, names: list[str]) -> str:
    return f"the {type(environment).__name__} that it returns lacks {'; '.join(PARTS[name].hint for name in names)}"


def _problems(first: Any, other: Any) -> Iterator[str]:
    """Yield what is wrong with two of the factory's objects; each check may rely on those before it."""
    if any(PARTS[name].method for name in _lacking(first)):
        yield _hints(first, _lacking(first))
    messages = [first.reset(SEED), first.reset(SEED), other.reset(SEED)]
    if not all(isinstance(message, str) and message for message in messages):
        yield f"reset({SEED}) has to return the user's message, a str that is not empty; it returned {messages[0]!r}"
    if len(set(messages)) > 1:
        yield (
            f"reset({SEED}) returned another message the second time, so runs cannot be branched: take chance from "
            "random.Random(seed) only, and start anew in reset"
        )
    if _lacking(first):  # what `reset` sets is there now
        yield _hints(first, _lacking(first))
    if not isinstance(first.system, str):
        yield f"system has to be a str, not {first.system!r}"
    if isinstance(first.max_steps, bool) or not isinstance(first.max_steps, int) or first.max_steps < 1:
        yield f"max_steps has to be an int of at least 1, not {first.max_steps!r}"
    yield from _tool_problems(first.tools)
    if list(first.tools) != list(other.tools):
        yield "tools differ between two environments of the same seed"
    yield from _end_problems(first)


def _tool_problems(tools: Any) -> Iterator[str]:
    form = 'each tool is {"type": "function", "function": {"name", "description", "parameters"}}; tool(...) makes one'
    try:
        functions = [tool["function"] for tool in tools]
        names = [function["name"] for function in functions]
        kinds = [function["parameters"]["type"] for function in functions]
        texts = [(tool["type"], function["description"]) for tool, function in zip(tools, functions)]
    except (TypeError, KeyError, IndexError) as exc:
        yield f"tools cannot be read ({type(exc).__name__}: {exc}); {form}"
        return
    if not names:
        yield f"tools is empty; {form}"
    if any(kind != "function" or not isinstance(text, str) for kind, text in texts):
        yield f"a tool has another type, or a description that is no str; {form}"
    if set(kinds) - {"object"}:
        yield f'the "parameters" of a tool are a JSON schema of the type "object"; {form}'
    if len(set(names)) < len(names):
        yield f"two tools have one name: {', '.join(names)}"


def _end_problems(environment: Any) -> Iterator[str]:
    for name, value in (("done", environment.done), ("success()", environment.success())):
        if not isinstance(value, bool):
            yield f"{name} has to be True or False, not {value!r}"
        if value:
            yield f"{name} is True after reset({SEED}): the task is over before the agent's first call"
