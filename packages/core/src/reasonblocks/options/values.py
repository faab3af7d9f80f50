"""Validates the options that are plain values; each error names the option, its value and the rule."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from inspect import iscoroutinefunction
from types import NoneType
from typing import TypeVar, get_args

from ..engine.fsm import HISTORY_LIMIT, MAX_HISTORY_LIMIT, DifficultyFSM, Thresholds
from ..exceptions import ConfigError
from ..session.prices import load_prices
from ..types import Budget, Escalate, Transition
from ..types.steering import AUTO, Condition, SecondLook
from ..util.json import MAX_INT, is_number
from ..util.secret import KEY_RULE, Secret, describe_key, is_key

T = TypeVar("T")
ON, OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")
"""The values of an environment variable that switches something, in any case."""
CONDITIONS: tuple[Condition, ...] = ("stalled", "over_budget")
"""The conditions of `stop_when` and `interrupt_when` that have a name."""


def text(name: str, value: str) -> str:
    given: object = value
    if not isinstance(given, str) or not given:
        raise ConfigError(name, value, "must be a string that is not empty")
    return given


def optional_text(name: str, value: object) -> None:
    if not isinstance(value, (str, NoneType)):
        raise ConfigError(name, value, f"must be a string, or None: give str({name})")


def json_by_name(name: str, value: object) -> None:
    """Validate a mapping of strings to values that sinks can write, or None."""
    if value is not None and not isinstance(value, Mapping):
        raise ConfigError(name, value, "must be a mapping of strings to JSON values, or None")
    for key, item in (value or {}).items():
        if not isinstance(key, str):
            raise ConfigError(name, value, f"must have strings as keys: give str(key) in place of {key!r}")
        try:
            json.dumps(item, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as exc:
            raise ConfigError(f"{name}[{key!r}]", item, f"must be JSON ({exc}): give its text, or a list") from exc


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(name, value, "must be True or False")
    return value


def choice(name: str, value: T, valid: tuple[T, ...]) -> T:
    if value not in valid:
        raise ConfigError.unknown(name, value, map(str, valid))
    return value


def call_back(name: str, value: T) -> T:
    if value is not None and not callable(value):
        raise ConfigError(name, value, "must be callable")
    return value


def plain_call_back(name: str, value: T) -> T:
    """Return a callable, or None. Raises `ConfigError` for a coroutine function, whose answer nobody would await."""
    if iscoroutinefunction(value) or iscoroutinefunction(getattr(value, "__call__", None)):  # noqa: B004 - its kind
        raise ConfigError(name, value, "must be a plain function: its answer is not awaited")
    return call_back(name, value)


def mapping(name: str, value: Mapping[str, T] | None) -> Mapping[str, T]:
    given: object = {} if value is None else value
    if not isinstance(given, Mapping):
        raise ConfigError(name, value, "must be a mapping")
    return given


def items(name: str, value: Iterable[T]) -> Iterable[T]:
    given: object = value
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ConfigError(name, value, "must be a list")
    return given


def switch(name: str, environ: Mapping[str, str]) -> bool:
    """Return True for an environment variable that is 1 or true, False for one that is 0, false, empty or missing."""
    value = environ.get(name, "")
    if value.lower() not in (*ON, *OFF):
        raise ConfigError(name, value, "must be 1 or 0")
    return value.lower() in ON


def api_key_of(value: object, environ: Mapping[str, str]) -> Secret | None:
    """Return the key from the argument, else from the environment variable; no error shows it."""
    name = "api_key"
    if value is None:
        name = "REASONBLOCKS_API_KEY"
        value = environ.get(name) or None
        if value is None:
            return None
    if not isinstance(value, str) or not is_key(value):
        raise ConfigError(name, describe_key(value), KEY_RULE)
    return Secret(value)


def machine(transition: Transition | None, fsm_thresholds: Mapping[str, float] | None) -> tuple[Transition | None, int]:
    """Return the built-in machine's transition, or None for the caller's own; and the history limit."""
    if transition is None:
        machine = DifficultyFSM.of(mapping("fsm_thresholds", fsm_thresholds))
        return machine.transition, machine.history_limit
    if fsm_thresholds is not None:
        rule = "a transition of your own leaves no use for fsm_thresholds: give one of the two"
        raise ConfigError("fsm_thresholds", fsm_thresholds, rule)
    call_back("transition", transition)
    limit: object = getattr(transition, "history_limit", HISTORY_LIMIT)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_HISTORY_LIMIT:
        raise ConfigError("transition.history_limit", limit, f"must be an int from 1 to {MAX_HISTORY_LIMIT}")
    return None, limit


def easy_of(transition: Transition | None) -> float:
    """Return the difficulty below which a step is easy: that of the built-in machine, or the usual one."""
    machine = getattr(transition, "__self__", None)
    return machine.thresholds.fast_threshold if isinstance(machine, DifficultyFSM) else Thresholds().fast_threshold


def share(name: str, value: object) -> float:
    if not is_number(value) or not 0 <= value <= 1:
        raise ConfigError(name, value, "must be a number from 0 to 1")
    return float(value)


def condition(name: str, value: object, token_budget: int | None) -> Condition | None:
    """Return the condition of `stop_when` or `interrupt_when`, validated."""
    if value is None or not isinstance(value, str):
        return None if plain_call_back(name, value) is None else "caller"
    if value == "over_budget" and token_budget is None:
        raise ConfigError(name, value, "needs a token_budget")
    found: Condition | None = next((known for known in CONDITIONS if known == value), None)
    if found is None:
        raise ConfigError.unknown(name, value, (*CONDITIONS, "a callable"))
    return found


def look(name: str, value: object) -> SecondLook | None:
    """Return the ends of a run that get a second look, None for none; True is "doubt"."""
    if isinstance(value, bool):
        return "doubt" if value else None
    valid: tuple[SecondLook, ...] = get_args(SecondLook)
    found = next((known for known in valid if known == value), None)
    if found is None:
        raise ConfigError.unknown(name, value, ("True", "False", *valid))
    return found


def budget(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_INT:
        raise ConfigError("token_budget", value, "must be an int from 1 to 2**63 - 1 (tokens), or None")
    return value


MOST_SHARES = 16
"""The most shares in a budget's `tell_at`."""
MOST_LANDING = 100
"""The most calls before the end of a budget from which on an agent is told to deliver."""
MOST_TOOLS, TOOL_BYTES = 8, 100
"""The most tools in a budget, and bytes in a tool's name: a sentence about one fits into 200 bytes."""
MOST_SECONDS = 366 * 24 * 60 * 60
"""The longest time of a budget: a year."""
MOST_USD = 1_000_000
"""The highest price of a budget."""


def limits(name: str, value: object) -> Budget | None:
    """Return a run's budget, validated."""
    if value is None:
        return None
    if value == "auto":
        return AUTO
    if not isinstance(value, Budget):
        raise ConfigError(name, value, 'must be a Budget, such as Budget(calls=40), "auto", or None')
    if (value.calls, value.tokens, value.cost_usd, value.seconds) == (None,) * 4 and not value.tools:
        raise ConfigError(name, value, "must have calls, tokens, cost_usd, seconds or tools")
    for field in ("calls", "tokens"):
        if (limit := getattr(value, field)) is not None:
            _whole(f"{name}.{field}", limit, 1, MAX_INT)
    if value.seconds is not None and not (is_number(value.seconds) and 0 < value.seconds <= MOST_SECONDS):
        raise ConfigError(f"{name}.seconds", value.seconds, f"must be a number above 0, at most {MOST_SECONDS:,}")
    if value.cost_usd is not None:
        if not (is_number(value.cost_usd) and 0 < value.cost_usd <= MOST_USD):
            rule = f"must be a number above 0, at most {MOST_USD:,} (US dollars)"
            raise ConfigError(f"{name}.cost_usd", value.cost_usd, rule)
        load_prices()
    tools = dict(mapping(f"{name}.tools", value.tools))
    if len(tools) > MOST_TOOLS or not all(map(_is_tool, tools)):
        rule = f"must have the names of at most {MOST_TOOLS} tools, of 1 to {TOOL_BYTES} bytes"
        raise ConfigError(f"{name}.tools", value.tools, rule)
    for tool, calls in tools.items():
        _whole(f"{name}.tools[{tool!r}]", calls, 1, MAX_INT)
    _whole(f"{name}.land_at", value.land_at, 0, MOST_LANDING)
    _whole(f"{name}.extend", value.extend, 0, MAX_INT)
    flag(f"{name}.every_call", value.every_call)
    shares = tuple(items(f"{name}.tell_at", value.tell_at))
    if len(shares) > MOST_SHARES or not all(is_number(share) and 0 < share < 1 for share in shares):
        raise ConfigError(f"{name}.tell_at", value.tell_at, f"must be at most {MOST_SHARES} numbers between 0 and 1")
    if value.extend and value.calls is None:
        raise ConfigError(f"{name}.extend", value.extend, "extends calls, of which the budget has no limit")
    return replace(value, tell_at=shares, tools=tools or None)


MOST_CALLS = 10_000
"""The most calls, texts and repetitions of an escalation."""


def escalation(name: str, value: object) -> Escalate | None:
    """Return the escalation of stuck runs, validated."""
    if value is None:
        return None
    if not isinstance(value, Escalate):
        raise ConfigError(name, value, 'must be an Escalate, such as Escalate(model="a-stronger-model"), or None')
    if value.model is None and value.effort is None:
        raise ConfigError(name, value, "must have a model or an effort")
    if value.model == "":
        raise ConfigError(f"{name}.model", value.model, "must be a model identifier or a model object")
    if value.effort is not None:
        text(f"{name}.effort", value.effort)
    for field, least in (("after", 0), ("dwell", 1), ("times", 1)):
        _whole(f"{name}.{field}", getattr(value, field), least, MOST_CALLS)
    return value


def _is_tool(name: object) -> bool:
    return isinstance(name, str) and name.isprintable() and 0 < len(name.encode()) <= TOOL_BYTES


def _whole(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        top = "2**63 - 1" if most == MAX_INT else f"{most:,}"
        raise ConfigError(name, value, f"must be an int from {least} to {top}")


def deadline(value: object) -> float:
    """Return the deadline of a step in seconds, of milliseconds."""
    if not is_number(value) or not 0 < value <= 60_000:
        raise ConfigError("step_deadline_ms", value, "must be a number of milliseconds above 0, at most 60,000")
    return value / 1000
