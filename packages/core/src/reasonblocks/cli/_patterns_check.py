"""`reasonblocks patterns check`: what an author should look at again, in files or in the store."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..exceptions import RecordError
from ._files import ORG, add_org, add_store, opened
from ._output import OK, PROBLEM, Parsers, printable, say

if TYPE_CHECKING:
    from ..types import Pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remark:
    """`file` and `line` where it is of a file, `id` where it is of a pattern; `error`: it cannot be used."""

    text: str
    file: str | None = None
    line: int | None = None
    id: str | None = None
    error: bool = False

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return printable(": ".join(part for part in (place, self.id, self.text) if part))

    def as_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("file", "line", "id", "error", "text")}


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "check",
        help="what to look at again before agents read it",
        description="Warns of patterns that repeat each other, are too long, lack a field, are never found, or that "
        "the sanitiser would change. FILE is JSON Lines or TOML; without one it is the store. 1 for what cannot be "
        "used, and with --strict for any warning.",
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--strict", action="store_true", help="exit code 1 for any warning")
    parser.add_argument("--json", action="store_true", help="one JSON object a warning, nothing else on stdout")
    add_store(parser)
    add_org(parser, f"what this org sees ({ORG})")
    parser.set_defaults(command=_check)


def _check(arguments: argparse.Namespace) -> int:
    remarks = list(_of_files(arguments) if arguments.files else _of_store(arguments))
    for one in remarks:
        say(json.dumps(one.as_dict()) if arguments.json else str(one))
    if not arguments.json and not remarks:
        say("nothing to look at")
    return PROBLEM if any(one.error or arguments.strict for one in remarks) else OK


def _of_files(arguments: argparse.Namespace) -> Iterator[_Remark]:
    """Each file's patterns, and which of them repeat each other or what the store has."""
    from .._authoring import read_patterns, warnings

    found: list[Pattern] = []
    for path in arguments.files:
        for one in read_patterns(path):
            if isinstance(one, RecordError):
                yield _Remark(text=one.reason, file=path, line=one.line, error=True)
            else:
                found.append(one.pattern)
                yield from (
                    _Remark(text=line, file=path, line=one.line, id=one.pattern.id) for line in warnings(one.pattern)
                )
    ids = {one.id for one in found}
    stored = [one for one in _seen(arguments) if one.id not in ids]
    yield from _repeated([*found, *stored], ids)
    yield from _too_long([*found, *stored])


def _of_store(arguments: argparse.Namespace) -> Iterator[_Remark]:
    """The user's own patterns, also against the starter library; that one is not judged by itself."""
    from .._authoring import warnings

    with opened(arguments) as store:
        own = {one.id for one in store.list(arguments.org or ORG)}
    seen = _seen(arguments)
    for one in seen:
        if one.id in own:
            yield from (_Remark(text=line, id=one.id) for line in warnings(one))
    yield from _repeated(seen, own)
    yield from _too_long(seen)


def _seen(arguments: argparse.Namespace) -> Sequence[Pattern]:
    with opened(arguments) as store:
        return store.list(arguments.org or ORG, layer=True)


def _repeated(patterns: Sequence[Pattern], judged: Iterable[str]) -> Iterator[_Remark]:
    from .._authoring import near_duplicates

    for near in near_duplicates(patterns):
        if near.first in judged or near.second in judged:
            how = "says the same" if near.same else f"is found by the same thoughts ({near.similarity:.2f})"
            yield _Remark(text=f"{how} as {near.second}: one of the two is enough", id=near.first)


def _too_long(patterns: Sequence[Pattern]) -> Iterator[_Remark]:
    from .._authoring import standing_bytes

    yield from (_Remark(text=line) for line in standing_bytes(patterns))
