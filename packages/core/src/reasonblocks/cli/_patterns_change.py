"""`reasonblocks patterns add | import | remove | restore`: what comes into the store, and what goes out of it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..exceptions import ConfigError, ReasonBlocksError, RecordError
from ..types._steering import TIERS
from ._files import ORG, add_org, add_store, named, opened, origin
from ._output import OK, PROBLEM, Parsers, say, say_data, warn

if TYPE_CHECKING:
    from ..types import Pattern

STDIN = "-"
STDIN_BYTES = 1024 * 1024
ID_HEX = 8
"""Characters of the content's hash in an id that we make."""


def add_to(commands: Parsers) -> None:
    _add_parser(commands)
    _import_parser(commands)
    for name, command, help in (
        ("remove", _remove, "take patterns out of the store; switch those of the starter library off"),
        ("restore", _restore, "switch patterns of the starter library on again"),
    ):
        parser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False)
        parser.add_argument("ids", nargs="+", metavar="ID")
        add_store(parser)
        parser.set_defaults(command=command)


def _add_parser(commands: Parsers) -> None:
    parser = commands.add_parser(
        "add",
        help="add one pattern",
        description="Adds one pattern: by options, or with - as the JSON object that stdin holds.",
        allow_abbrev=False,
    )
    parser.add_argument("stdin", nargs="?", choices=[STDIN], metavar="-", help="read the pattern from stdin, as JSON")
    parser.add_argument("--tier", choices=TIERS)
    parser.add_argument("--failure-type", metavar="TYPE", help="the trouble that it is for: loop, drift, ...")
    parser.add_argument("--field", action="append", metavar="NAME=TEXT", help="a text of it: diagnosis=...; repeatable")
    parser.add_argument("--exemplar", action="append", metavar="TEXT", help="what it is found by; repeatable")
    parser.add_argument("--gate", type=float, metavar="0..1", help="its own similarity in place of its tier's")
    parser.add_argument("--id", metavar="ID", help="its name; made from its content where there is none")
    parser.add_argument("--replace", action="store_true", help="also when there is a pattern of that id")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_store(parser)
    add_org(parser, f"only for this org; tiers e2 and e3 are for all without it, e1 for {ORG!r}")
    parser.set_defaults(command=_add)


def _import_parser(commands: Parsers) -> None:
    parser = commands.add_parser(
        "import",
        help="add all patterns of files",
        description="Adds the patterns of JSON Lines or TOML files, or replaces those of the same id. When one of them "
        "cannot be used, each fault is said and nothing is added.",
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--skip-bad", action="store_true", help="add the others when some cannot be used")
    parser.add_argument("--dry-run", action="store_true", help="say what would be added, and add nothing")
    parser.add_argument("--json", action="store_true", help="the counts as one JSON object")
    add_store(parser)
    parser.set_defaults(command=_import)


def _add(arguments: argparse.Namespace) -> int:
    """Raises `ConfigError` for a pattern that cannot be used."""
    from .._authoring import as_jsonl, warnings

    pattern = _given(arguments)
    with opened(arguments) as store:
        before = store.get(pattern.id)
        if before is not None and not arguments.replace:
            raise ReasonBlocksError(f"there is a pattern {pattern.id!r} already: --replace, or give another --id")
        store.add([pattern])
    for line in warnings(pattern):
        warn(f"{pattern.id}: {line}")
    if arguments.json:
        say_data(as_jsonl([pattern]))
    else:
        say(f"added {pattern.id}")
    return OK


def _given(arguments: argparse.Namespace) -> Pattern:
    from .._authoring import pattern_from

    told = _from_stdin() if arguments.stdin else {}
    told |= {
        name: value
        for name, value in (
            ("tier", arguments.tier),
            ("failure_type", arguments.failure_type),
            ("exemplars", arguments.exemplar),
            ("gate_threshold", arguments.gate),
            ("org_id", arguments.org),
            ("id", arguments.id),
        )
        if value is not None
    }
    if arguments.field:
        told["fields"] = _fields(arguments.field, told.get("fields"))
    if told.get("tier") == "e1":
        told.setdefault("org_id", ORG)
    told.setdefault("id", _made_id(told))
    return pattern_from(told)


def _from_stdin() -> dict[str, Any]:
    data = sys.stdin.read(STDIN_BYTES + 1)
    if len(data) > STDIN_BYTES:
        raise ConfigError("stdin", f"{data[:20]}...", f"at most {STDIN_BYTES:,} characters: use import FILE")
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise ConfigError("stdin", data[:60], f"is not JSON: {exc}") from exc
    if not isinstance(told, dict):
        raise ConfigError("stdin", data[:60], "must be one JSON object; several are for import FILE")
    return told


def _fields(given: Iterable[str], before: object) -> dict[str, Any]:
    """`a=text`; `a.b=text` is a text within the table a."""
    found: dict[str, Any] = dict(before) if isinstance(before, dict) else {}
    for one in given:
        name, equals, text = one.partition("=")
        if not equals or not name.strip():
            raise ConfigError("--field", one, "must be NAME=TEXT")
        head, dot, rest = name.strip().partition(".")
        found[head] = {**_table(found.get(head)), rest: text} if dot else text
    return found


def _table(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _made_id(told: dict[str, Any]) -> str:
    from .._text import digest

    said = digest(json.dumps([told.get("fields"), told.get("exemplars")], sort_keys=True))[:ID_HEX]
    return "-".join(str(part) for part in (told.get("tier"), told.get("failure_type"), said) if part)


def _import(arguments: argparse.Namespace) -> int:
    """1 when something cannot be used, unless the others may be added without it."""
    patterns, faults = _read(arguments.files)
    for fault in faults:
        warn(str(fault))
    if not patterns or (faults and not arguments.skip_bad):
        bad = f"{len(faults)} cannot be used, " if faults else ""
        warn(
            f"reasonblocks patterns import: {bad}nothing was added" + (" (--skip-bad adds the others)" * bool(patterns))
        )
        return PROBLEM
    with opened(arguments) as store:
        before = [store.get(one.id) for one in patterns]
        if not arguments.dry_run:
            store.add(patterns)
    counts = {
        "new": sum(one is None for one in before),
        "replaced": sum(one is not None for one in before),
        "skipped": len(faults),
        "dry_run": arguments.dry_run,
    }
    said = f"{counts['new']} new, {counts['replaced']} replaced, {counts['skipped']} skipped"
    say(json.dumps(counts) if arguments.json else said + (": a dry run, nothing was added" * arguments.dry_run))
    return OK


def _read(files: Sequence[str]) -> tuple[list[Pattern], list[RecordError]]:
    """The patterns of all files, an id of two files once: a fault where it comes again."""
    from .._authoring import Authored, read_patterns

    found: dict[str, tuple[str, Pattern]] = {}
    faults: list[RecordError] = []
    for path in dict.fromkeys(files):
        for one in read_patterns(path):
            if isinstance(one, Authored) and one.pattern.id in found:
                one = RecordError(path, one.line, f"{one.pattern.id}: this id is in {found[one.pattern.id][0]}, too")
            if isinstance(one, Authored):
                found[one.pattern.id] = (path, one.pattern)
            else:
                faults.append(one)
    return [pattern for _, pattern in found.values()], faults


def _remove(arguments: argparse.Namespace) -> int:
    """Raises `ReasonBlocksError` for an id that is not there; then nothing is removed."""
    from ..types import Pattern

    with opened(arguments) as store:
        found = [named(store, name) for name in dict.fromkeys(arguments.ids)]
        for one in found:
            told = origin(one)
            if told == "starter":
                store.add([Pattern(id=one.id, tier=one.tier, failure_type=one.failure_type, off=True)])
            elif told != "starter, off":
                store.remove(one.id)
            say(f"{one.id}: {_DONE[told]}")
    return OK


_DONE = {
    "starter": "switched off; `reasonblocks patterns restore` switches it on",
    "starter, off": "is off already",
    "yours": "removed",
    "yours, over the starter's": "yours is removed; the starter's shows again",
}


def _restore(arguments: argparse.Namespace) -> int:
    with opened(arguments) as store:
        for one in [named(store, name) for name in dict.fromkeys(arguments.ids)]:
            if off := origin(one) == "starter, off":
                store.remove(one.id)
            say(f"{one.id}: {'is on again' if off else 'is not switched off'}")
    return OK
