"""Checks the settings of `Threads`, and puts an engine together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from uuid import uuid4

from reasonblocks.exceptions import ConfigError

from ._inferencers import RuleInferencer
from .builtin import BUILT_IN
from .catalogue import Action
from .engine import Engine
from .engine.offers import offers_of
from .engine.opening import A_POLICY, check
from .handlers import HANDLERS
from .ports import Cleaner, Inferencer, Notifier, Store
from .stores import default_file, open_store
from .values import Policy


class _Default(Enum):
    DEFAULT = "$REASONBLOCKS_HOME/threads.db"


DEFAULT: Final = _Default.DEFAULT
NO_PATHS = ("", ".", ":memory:")
Database: TypeAlias = "str | os.PathLike[str] | Store | Literal[_Default.DEFAULT] | None"


def wire_engine(
    database: Database,
    *,
    actions: Iterable[Action],
    policy: Policy | None,
    inferencer: Inferencer | None,
    cleaners: Iterable[Cleaner],
    notifier: Notifier | None,
    org_id: str,
    clock: Callable[[], float],
) -> tuple[Engine, bool]:
    """Return an engine, and whether its store is its own. Raises `ConfigError` for settings that cannot be."""
    if policy is not None:
        check("policy", policy, Policy, A_POLICY)
    if inferencer is not None:
        check("inferencer", inferencer, Inferencer, "must have a name and a method infer(ask)")
    if notifier is not None:
        check("notifier", notifier, Notifier, "must have a method notify(card)")
    check("org_id", org_id, str, "must be a text that is not empty")
    if not org_id:
        raise ConfigError("org_id", org_id, "must be a text that is not empty")
    if not callable(clock):
        raise ConfigError("clock", clock, "must be a function that returns the seconds since the epoch")
    own = _actions(actions)
    by_kind = _cleaners(cleaners)
    engine = Engine(
        _store(database),
        actions=(*BUILT_IN, *own),
        inferencer=inferencer or RuleInferencer(),
        handlers=HANDLERS,
        clock=clock,
        token=_token,
        cleaners=by_kind,
        notifier=notifier,
        org_id=org_id,
        offers=offers_of(own, inferencer.name if inferencer else None, by_kind, notifier is not None, policy),
    )
    return engine, not _is_store(database)


def _token() -> str:
    return uuid4().hex


def _actions(actions: Iterable[Action]) -> tuple[Action, ...]:
    own = tuple(actions)
    for action in own:
        check("actions", action, Action, "must be Actions")
        if any(action.name == built_in.name for built_in in BUILT_IN):
            raise ConfigError("actions", action.name, "is the name of a built-in action; choose another one")
    return own


def _cleaners(cleaners: Iterable[Cleaner]) -> dict[str, Cleaner]:
    by_kind: dict[str, Cleaner] = {}
    for cleaner in cleaners:
        check("cleaners", cleaner, Cleaner, "must have kinds and a method clean_up(thread, key)")
        for kind in cleaner.kinds:
            if kind in by_kind:
                raise ConfigError("cleaners", kind, "is a kind that two cleaners have; leave one of them out")
            by_kind[kind] = cleaner
    return by_kind


def _is_store(database: object) -> bool:
    return all(hasattr(database, name) for name in ("write", "read", "waiting"))


def _store(database: Any) -> Store:
    if _is_store(database):
        store: Store = database
        return store
    if database is DEFAULT:
        return open_store(default_file(os.environ))
    if database is not None and (not isinstance(database, str | os.PathLike) or str(database) in NO_PATHS):
        raise ConfigError("database", database, "must be a path, a PostgreSQL URL, or None for one in memory")
    if isinstance(database, str) and database.startswith(("postgresql://", "postgres://")):
        return open_store(database)
    if isinstance(database, str) and "://" in database:
        shown = f"{database.partition('://')[0]}://..."  # no password
        raise ConfigError("database", shown, "must be a path, a postgresql:// URL, or None for one in memory")
    if database is not None and not Path(database).absolute().parent.is_dir():
        raise ConfigError(
            "database", os.fspath(database), "is in a folder that does not exist; create the folder first"
        )
    return open_store(database)
