"""Implements `reasonblocks patterns add | import | remove | restore`, which change the store."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reasonblocks.exceptions import ConfigError, ReasonBlocksError, RecordError
from reasonblocks.types.steering import TIERS

from .files import ORG, add_org, add_store, is_off_by_default, named, opened, origin, switched_on
from .output import OK, PROBLEM, Parsers, say, say_data, warn

if TYPE_CHECKING:
    from reasonblocks.backends.local_store import LocalStore
    from reasonblocks.types import Pattern

STDIN = "-"
STDIN_BYTES = 1024 * 1024
ID_HEX = 8
"""Characters of the content's hash in a generated id."""


def add_to(commands: Parsers) -> None:
    _add_parser(commands)
    _import_parser(commands)
    about = "remove patterns from the store; switch off those of the starter library"
    removing = _parser(commands, "remove", _remove, about)
    removing.add_argument("ids", nargs="+", metavar="ID")
    restoring = _parser(commands, "restore", _restore, "switch on patterns that are off")
    restoring.add_argument("ids", nargs="*", metavar="ID")
    restoring.add_argument("--all", action="store_true", help="all of the starter library that are off")


def _parser(
    commands: Parsers, name: str, command: Callable[[argparse.Namespace], int], help: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False)
    add_store(parser)
    parser.set_defaults(command=command)
    return parser


def _add_parser(commands: Parsers) -> None:
    parser = commands.add_parser(
        "add",
        help="add one pattern",
        description="Adds one pattern, from options or, with -, from a JSON object on stdin.",
        allow_abbrev=False,
    )
    parser.add_argument("stdin", nargs="?", choices=[STDIN], metavar="-", help="read the pattern from stdin, as JSON")
    parser.add_argument("--tier", choices=TIERS)
    parser.add_argument("--failure-type", metavar="TYPE", help="the kind of trouble that it is for: loop, drift, ...")
    parser.add_argument(
        "--kind", action="append", metavar="KIND", help="the kind of finding that it is for: waiting, ...; repeatable"
    )
    parser.add_argument(
        "--field", action="append", metavar="NAME=TEXT", help="one of its texts: diagnosis=...; repeatable"
    )
    parser.add_argument("--exemplar", action="append", metavar="TEXT", help="a text by which it is found; repeatable")
    parser.add_argument("--gate", type=float, metavar="0..1", help="its own similarity threshold instead of its tier's")
    parser.add_argument("--id", metavar="ID", help="its id; by default made from its content")
    parser.add_argument("--replace", action="store_true", help="replace an existing pattern with this id")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_store(parser)
    add_org(parser, f"only for this org; by default tiers e2 and e3 are for all orgs, e1 for {ORG!r}")
    parser.set_defaults(command=_add)


def _import_parser(commands: Parsers) -> None:
    parser = commands.add_parser(
        "import",
        help="add all patterns of files",
        description="Adds the patterns of JSON Lines or TOML files, or replaces those with the same ids. If one is "
        "invalid, every fault is reported and nothing is added.",
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--skip-bad", action="store_true", help="add the valid patterns if some are invalid")
    parser.add_argument("--dry-run", action="store_true", help="report what would be added, and add nothing")
    parser.add_argument("--json", action="store_true", help="print the counts as one JSON object")
    add_store(parser)
    parser.set_defaults(command=_import)


def _add(arguments: argparse.Namespace) -> int:
    """Add one pattern. Raises `ConfigError` for an invalid one."""
    from ..authoring import as_jsonl, warnings

    pattern = _pattern_of(arguments)
    with opened(arguments) as store:
        before = store.get(pattern.id)
        if before is not None and not arguments.replace:
            raise ReasonBlocksError(f"pattern {pattern.id!r} already exists: use --replace or another --id")
        store.add([pattern])
    for line in warnings(pattern):
        warn(f"{pattern.id}: {line}")
    if arguments.json:
        say_data(as_jsonl([pattern]))
    else:
        say(f"added {pattern.id}")
    return OK


def _pattern_of(arguments: argparse.Namespace) -> Pattern:
    from ..authoring import pattern_from

    values = _from_stdin() if arguments.stdin else {}
    values |= {
        name: value
        for name, value in (
            ("tier", arguments.tier),
            ("failure_type", arguments.failure_type),
            ("kinds", arguments.kind),
            ("exemplars", arguments.exemplar),
            ("gate_threshold", arguments.gate),
            ("org_id", arguments.org),
            ("id", arguments.id),
        )
        if value is not None
    }
    if arguments.field:
        values["fields"] = _fields(arguments.field, values.get("fields"))
    if values.get("tier") == "e1":
        values.setdefault("org_id", ORG)
    values.setdefault("id", _generated_id(values))
    return pattern_from(values)


def _from_stdin() -> dict[str, Any]:
    data = sys.stdin.read(STDIN_BYTES + 1)
    if len(data) > STDIN_BYTES:
        raise ConfigError("stdin", f"{data[:20]}...", f"at most {STDIN_BYTES:,} characters: use import FILE")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise ConfigError("stdin", data[:60], f"is not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise ConfigError("stdin", data[:60], "must be one JSON object; for several use import FILE")
    return value


def _fields(options: Iterable[str], before: object) -> dict[str, Any]:
    """Add the texts of options to the fields: `a=text`, or `a.b=text` for a text within the table a."""
    found: dict[str, Any] = dict(before) if isinstance(before, dict) else {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals or not name.strip():
            raise ConfigError("--field", option, "must be NAME=TEXT")
        head, dot, rest = name.strip().partition(".")
        found[head] = {**_table(found.get(head)), rest: text} if dot else text
    return found


def _table(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _generated_id(values: dict[str, Any]) -> str:
    from reasonblocks.util.text import digest

    content = digest(json.dumps([values.get("fields"), values.get("exemplars")], sort_keys=True))[:ID_HEX]
    return "-".join(str(part) for part in (values.get("tier"), values.get("failure_type"), content) if part)


def _import(arguments: argparse.Namespace) -> int:
    """Add the patterns of files; return 1 if one is invalid, unless `--skip-bad` allows that, or if there is none."""
    patterns, faults = _read(arguments.files)
    for fault in faults:
        warn(str(fault))
    if not patterns or (faults and not arguments.skip_bad):
        bad = f"{len(faults)} invalid, " if faults else ""
        warn(
            f"reasonblocks patterns import: {bad}nothing was added" + (" (--skip-bad adds the others)" * bool(patterns))
        )
        return PROBLEM
    with opened(arguments) as store:
        before = [store.get(pattern.id) for pattern in patterns]
        if not arguments.dry_run:
            store.add(patterns)
    counts = {
        "new": sum(pattern is None for pattern in before),
        "replaced": sum(pattern is not None for pattern in before),
        "skipped": len(faults),
        "dry_run": arguments.dry_run,
    }
    summary = f"{counts['new']} new, {counts['replaced']} replaced, {counts['skipped']} skipped"
    say(json.dumps(counts) if arguments.json else summary + (": a dry run, nothing was added" * arguments.dry_run))
    return OK


def _read(files: Sequence[str]) -> tuple[list[Pattern], list[RecordError]]:
    """Read the patterns of all files; an id that is in two files is a fault in the second."""
    from ..authoring import read_patterns

    found: dict[str, tuple[str, Pattern]] = {}
    faults: list[RecordError] = []
    for path in dict.fromkeys(files):
        for item in read_patterns(path):
            if isinstance(item, RecordError):
                faults.append(item)
            elif (first := found.get(item.pattern.id)) is not None:
                faults.append(RecordError(path, item.line, f"{item.pattern.id}: this id is in {first[0]}, too"))
            else:
                found[item.pattern.id] = (path, item.pattern)
    return [pattern for _, pattern in found.values()], faults


def _remove(arguments: argparse.Namespace) -> int:
    """Remove patterns, or switch them off. Raises `ReasonBlocksError` for an unknown id, before anything is removed."""
    from reasonblocks.types import Pattern

    with opened(arguments) as store:
        found = [named(store, name) for name in dict.fromkeys(arguments.ids)]
        for pattern in found:
            source, by_default = origin(pattern), is_off_by_default(pattern.id)
            if source == "starter" and not by_default:
                store.add([Pattern(id=pattern.id, tier=pattern.tier, failure_type=pattern.failure_type, off=True)])
            elif source != "starter, off":
                store.remove(pattern.id)
            over = source == "yours, over the starter's" and by_default
            say(f"{pattern.id}: {'yours is removed; that of the starter is off' if over else _DONE[source]}")
    return OK


_DONE = {
    "starter": "switched off; `reasonblocks patterns restore` switches it on",
    "starter, off": "is off already",
    "yours": "removed",
    "yours, over the starter's": "yours is removed; the starter's shows again",
}


def _restore(arguments: argparse.Namespace) -> int:
    """Switch patterns on. Raises `ReasonBlocksError` without an id or --all, and for an unknown id."""
    if bool(arguments.ids) == arguments.all:
        raise ReasonBlocksError(
            "name the patterns to switch on, or give --all; `reasonblocks patterns list` names them"
        )
    with opened(arguments) as store:
        if arguments.all:
            found = [pattern for pattern in store.list(ORG, layer=True) if origin(pattern) == "starter, off"]
        else:
            found = [named(store, name) for name in dict.fromkeys(arguments.ids)]
        for pattern in found:
            if pattern.off:
                _switch_on(store, pattern)
            say(f"{pattern.id}: {'is on' if pattern.off else 'is not switched off'}")
    return OK


def _switch_on(store: LocalStore, pattern: Pattern) -> None:
    """Store the pattern as one that is used; a shipped one that is on by default needs no copy."""
    if origin(pattern) != "starter, off":
        store.add([replace(pattern, off=False)])
    elif is_off_by_default(pattern.id):
        store.add([switched_on(pattern.id)])
    else:
        store.remove(pattern.id)
