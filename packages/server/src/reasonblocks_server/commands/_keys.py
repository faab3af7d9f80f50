"""Implements `reasonblocks keys create | list | revoke`: the keys of a server, in its database."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from reasonblocks_workbench.cli.options import FlagError
from reasonblocks_workbench.cli.output import OK, PROBLEM, Parsers, Table, say, show, warn

from ..values import SCOPES

if TYPE_CHECKING:
    from ..values import KeyRow, Scope

ORG = "default"
AGENT_SCOPES: tuple[Scope, ...] = ("ingest", "evaluate")
DAY_S = 86_400
MOST_DAYS = 36_500
"""The longest life of a key: a century."""
BY = "command line"
"""The key id in the audit for changes by this command."""


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "keys",
        help="create, list or revoke the keys of a server",
        description="Manages the keys of a server directly in its database. The server need not run. A running server "
        "refuses a revoked key within 30 seconds.",
        allow_abbrev=False,
    )
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_create(subcommands)
    _add(subcommands, "list", "list the keys, without their secrets").set_defaults(command=_list)
    revoke = _add(subcommands, "revoke", "revoke a key")
    revoke.add_argument("key_id", metavar="ID", help="the id of the key, as `list` prints it, or the key")
    revoke.set_defaults(command=_revoke)


def _add_create(commands: Parsers) -> None:
    parser = _add(commands, "create", "create a key and print it; only its hash is stored")
    parser.add_argument("--name", required=True, help="who or what uses the key")
    parser.add_argument(
        "--scopes", type=_scopes, default=AGENT_SCOPES, metavar="SCOPE,...",
        help=f"comma-separated scopes, any of {', '.join(SCOPES)} ({','.join(AGENT_SCOPES)})",
    )  # fmt: skip
    parser.add_argument("--project", metavar="ID", help="limit the key to the runs of this project")
    parser.add_argument(
        "--expires-days", type=float, metavar="N", help="the number of days until the key expires (never)"
    )
    parser.set_defaults(command=_create)


def _add(commands: Parsers, name: str, help: str) -> argparse.ArgumentParser:
    from ._opened import add_database

    parser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False)
    parser.add_argument("--org", default=ORG, help=f"the org of the keys ({ORG})")
    add_database(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object per key, nothing else")
    return parser


def _scopes(text: str) -> tuple[Scope, ...]:
    wanted = {part.strip() for part in text.split(",")}
    if unknown := sorted(wanted - {*SCOPES}):
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not a scope; valid: {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in wanted)


def _create(arguments: argparse.Namespace) -> int:
    from ._opened import opened, place_of, settings_of

    now, days = time.time(), arguments.expires_days
    if days is not None and not 0 < days <= MOST_DAYS:
        raise FlagError("--expires-days", f"must be more than 0 and at most {MOST_DAYS}")
    expires = None if days is None else now + days * DAY_S
    settings = settings_of(arguments)
    with opened(settings) as storage:
        key, secret = storage.keys.add(
            arguments.org, name=arguments.name, scopes=arguments.scopes, project_id=arguments.project,
            expires=expires, now=now,
        )  # fmt: skip
        storage.audit.add(arguments.org, BY, "key.add", f"{key.key_id} {' '.join(key.scopes)}", now)
    if arguments.json:
        say(json.dumps({**asdict(key), "key": secret}))
    else:
        say(secret)
        where = f"org {key.org_id} in {place_of(settings)}"
        warn(f"key {key.key_id} of {where}: {', '.join(key.scopes)}; it is shown only once")
    return OK


def _list(arguments: argparse.Namespace) -> int:
    from ._opened import opened, used_settings_of

    with opened(used_settings_of(arguments)) as storage:
        keys = storage.keys.list(arguments.org)
    if arguments.json:
        for key in keys:
            say(json.dumps(asdict(key)))
    elif keys:
        head = ("id", "name", "scopes", "project", "created", "used", "state")
        show(Table(title=f"keys of org {arguments.org}", head=head, rows=[_row(key) for key in keys]))
    else:
        warn(f"reasonblocks keys: org {arguments.org} has no key")
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


def _revoke(arguments: argparse.Namespace) -> int:
    from ._opened import opened, used_settings_of

    now, key_id = time.time(), _id_of(arguments.key_id)
    with opened(used_settings_of(arguments)) as storage:
        done = storage.keys.revoke(arguments.org, key_id, now)
        if done:
            storage.audit.add(arguments.org, BY, "key.revoke", key_id, now)
    if not done:
        warn(f"reasonblocks keys: org {arguments.org} has no valid key {key_id!r}; `reasonblocks keys list` shows them")
        return PROBLEM
    if arguments.json:
        say(json.dumps({"key_id": key_id, "revoked": now}))
    else:
        say(f"revoked {key_id}; a running server refuses it within 30 seconds")
    return OK


def _id_of(given: str) -> str:
    """Return the id in a whole key, so that no message repeats the secret."""
    return given.removeprefix("rbk_").partition("_")[0] if given.startswith("rbk_") else given
