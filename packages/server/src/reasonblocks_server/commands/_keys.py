"""Implements `reasonblocks keys create | list | revoke`: the keys of a server, in its database."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, TypeAlias

from typer import Argument, Option, Typer

from reasonblocks_workbench.cli.options import FlagError, decimal, expand_options
from reasonblocks_workbench.cli.output import OK, PROBLEM, Table, say, show, warn

from ..values import SCOPES
from ._opened import Database, open_storage, place_of, settings_in_use, settings_of

if TYPE_CHECKING:
    from ..values import KeyRow, Scope

ORG = "default"
AGENT_SCOPES: tuple[Scope, ...] = ("ingest", "evaluate")
DAY_S = 86_400
MOST_DAYS = 36_500
"""The longest life of a key: a century."""
BY = "command line"
"""The key id in the audit for changes by this command."""


keys = Typer(
    add_completion=False,
    help="Create, list or revoke the keys of a server, directly in its database.\n\nThe server need not run. A running "
    "server refuses a revoked key within 30 seconds.",
)
Org: TypeAlias = Annotated[str, Option(metavar="ORG", help="the org of the keys")]
Json: TypeAlias = Annotated[bool, Option("--json", help="print one JSON object per key, nothing else")]


@keys.command("create")
@expand_options
def create(
    database: Database,
    name: Annotated[str, Option(metavar="NAME", help="who or what uses the key")],
    scopes: Annotated[
        str, Option(metavar="SCOPE,...", help=f"comma-separated scopes, any of {', '.join(SCOPES)}")
    ] = ",".join(AGENT_SCOPES),
    project: Annotated[str | None, Option(metavar="ID", help="limit the key to the runs of this project")] = None,
    expires_days: Annotated[
        float | None, Option(parser=decimal, metavar="N", help="the number of days until the key expires (never)")
    ] = None,
    org: Org = ORG,
    as_json: Json = False,
) -> int:
    """Create a key and print it; only its hash is stored."""
    now = time.time()
    if expires_days is not None and not 0 < expires_days <= MOST_DAYS:
        raise FlagError("--expires-days", f"must be more than 0 and at most {MOST_DAYS}")
    expires = None if expires_days is None else now + expires_days * DAY_S
    wanted = _scopes(scopes)
    settings = settings_of(database)
    with open_storage(settings) as storage:
        key, secret = storage.keys.add(org, name=name, scopes=wanted, project_id=project, expires=expires, now=now)
        storage.audit.add(org, BY, "key.add", f"{key.key_id} {' '.join(key.scopes)}", now)
    if as_json:
        say(json.dumps({**asdict(key), "key": secret}))
    else:
        say(secret)
        where = f"org {key.org_id} in {place_of(settings)}"
        warn(f"key {key.key_id} of {where}: {', '.join(key.scopes)}; it is shown only once")
    return OK


def _scopes(text: str) -> tuple[Scope, ...]:
    wanted = {part.strip() for part in text.split(",")}
    if unknown := sorted(wanted - {*SCOPES}):
        raise FlagError("--scopes", f"{unknown[0]!r} is not a scope; valid: {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in wanted)


@keys.command("list")
@expand_options
def list_keys(database: Database, org: Org = ORG, as_json: Json = False) -> int:
    """List the keys, without their secrets."""
    with open_storage(settings_in_use(database)) as storage:
        found = storage.keys.list(org)
    if as_json:
        for key in found:
            say(json.dumps(asdict(key)))
    elif found:
        head = ("id", "name", "scopes", "project", "created", "used", "state")
        show(Table(title=f"keys of org {org}", head=head, rows=[_row(key) for key in found]))
    else:
        warn(f"reasonblocks keys: org {org} has no key")
    return OK


def _row(key: KeyRow) -> tuple[str, ...]:
    project = key.project_id or ""
    return (key.key_id, key.name, ",".join(key.scopes), project, _day(key.created), _day(key.used), _state(key))


def _state(key: KeyRow) -> str:
    if key.revoked is not None:
        return f"revoked {_day(key.revoked)}"
    if key.expires is None:
        return "valid"
    return f"{'expired' if key.expires <= time.time() else 'valid until'} {_day(key.expires)}"


def _day(at: float | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d")


@keys.command("revoke")
@expand_options
def revoke(
    database: Database,
    key: Annotated[str, Argument(metavar="ID", help="the id of the key, as `list` prints it, or the key")],
    org: Org = ORG,
    as_json: Json = False,
) -> int:
    """Revoke a key."""
    now, key_id = time.time(), _id_of(key)
    with open_storage(settings_in_use(database)) as storage:
        done = storage.keys.revoke(org, key_id, now)
        if done:
            storage.audit.add(org, BY, "key.revoke", key_id, now)
    if not done:
        warn(f"reasonblocks keys: org {org} has no valid key {key_id!r}; `reasonblocks keys list` shows them")
        return PROBLEM
    if as_json:
        say(json.dumps({"key_id": key_id, "revoked": now}))
    else:
        say(f"revoked {key_id}; a running server refuses it within 30 seconds")
    return OK


def _id_of(given: str) -> str:
    """Return the id in a whole key, so that no message repeats the secret."""
    return given.removeprefix("rbk_").partition("_")[0] if given.startswith("rbk_") else given
