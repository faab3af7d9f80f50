"""The settings that are plain values: difficulty level, state machine, budget, deadline, switches."""

from __future__ import annotations

from collections.abc import Mapping

from .._fsm import HISTORY_LIMIT, MAX_HISTORY_LIMIT, DifficultyFSM
from .._json import MAX_INT
from .._secret import KEY_RULE, Secret, described, is_key, shown_url
from ..exceptions import ConfigError, NotYetAvailable
from ..types import Transition
from ._checks import call_back, is_number, mapping
from ._options import Options


def on(name: str, environ: Mapping[str, str]) -> bool:
    """Is a variable set to 1? Only "", 0 and 1 are understood."""
    value = environ.get(name, "")
    if value not in ("", "0", "1"):
        raise ConfigError(name, value, "must be 1 or 0")
    return value == "1"


def key(value: object, environ: Mapping[str, str]) -> Secret | None:
    """Return the key from the argument, else from the environment variable; no error shows it."""
    name = "api_key"
    if value is None:
        name = "REASONBLOCKS_API_KEY"
        value = environ.get(name) or None
        if value is None:
            return None
    if not isinstance(value, str) or not is_key(value):
        raise ConfigError(name, described(value), KEY_RULE)
    return Secret(value)


def refuse_server(given: Options, environ: Mapping[str, str]) -> None:
    """This version has no client for a server: say so instead of steering without it."""
    reason = "this version runs embedded only and cannot talk to a server; leave it out"
    if given.base_url is not None:
        raise NotYetAvailable("base_url", shown_url(given.base_url), reason)
    if environ.get("REASONBLOCKS_BASE_URL"):
        raise NotYetAvailable("REASONBLOCKS_BASE_URL", shown_url(environ["REASONBLOCKS_BASE_URL"]), reason)
    if given.live_streaming_enabled:
        raise NotYetAvailable("live_streaming_enabled", True, reason)


def machine(given: Options) -> tuple[Transition | None, int]:
    """The built-in machine, or None and the caller's history limit."""
    if given.transition is None:
        machine = DifficultyFSM.of(mapping("fsm_thresholds", given.fsm_thresholds))
        return machine.transition, machine.history_limit
    if given.fsm_thresholds is not None:
        rule = "a transition of your own leaves no use for fsm_thresholds: give one of the two"
        raise ConfigError("fsm_thresholds", given.fsm_thresholds, rule)
    call_back("transition", given.transition)
    limit: object = getattr(given.transition, "history_limit", HISTORY_LIMIT)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_HISTORY_LIMIT:
        raise ConfigError("transition.history_limit", limit, f"must be an int from 1 to {MAX_HISTORY_LIMIT}")
    return None, limit


def budget(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_INT:
        raise ConfigError("token_budget", value, "must be an int from 1 to 2**63 - 1 (tokens), or None")
    return value


def deadline(value: object) -> float:
    if not is_number(value) or not 0 < value <= 60_000:
        raise ConfigError("step_deadline_ms", value, "must be a number of milliseconds above 0, at most 60,000")
    return value / 1000
