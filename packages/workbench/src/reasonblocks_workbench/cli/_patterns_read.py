"""Implements `reasonblocks patterns list | show | search | export | check`, which read the store and change nothing."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reasonblocks.exceptions import RecordError
from reasonblocks.types.steering import TIERS

from .files import ORG, STDOUT, add_org, add_store, named, opened, origin, write
from .output import OK, PROBLEM, Parsers, Table, printable, say, show, warn

if TYPE_CHECKING:
    from reasonblocks.backends.local_store import LocalStore
    from reasonblocks.types import ETrace, Pattern, Tier

PREVIEW = 70
"""Characters of a pattern's text in a row."""
SEARCHED: tuple[Tier, ...] = ("e1", "e2")


def add_to(commands: Parsers) -> None:
    parser = _parser(commands, "list", _list, "list the patterns of the store and of the starter library")
    _add_filter(parser, TIERS)
    parser.add_argument("--yours", action="store_true", help="only the store's own patterns")
    parser = _parser(commands, "show", _show, "show one whole pattern, and how a model reads it")
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--model", default="", metavar="MODEL", help="the model that reads it (a neutral form)")
    parser = _parser(
        commands, "search", _search, "show how similar a text is to each pattern, and which would be found"
    )
    parser.add_argument(
        "texts", nargs="+", metavar="TEXT", help="what an agent said, one TEXT per step, the newest last"
    )
    _add_filter(parser, SEARCHED)
    parser.add_argument("--all", action="store_true", help="also show patterns that are not similar enough")
    parser = _parser(commands, "export", _export, "write the store's patterns as JSON Lines or TOML")
    parser.add_argument("--out", default=STDOUT, metavar="FILE", help="the output file; FILE.toml is TOML (stdout)")
    parser.add_argument("--toml", action="store_true", help="write TOML, whatever the file is called")
    parser.add_argument("--starter", action="store_true", help="include the starter library")
    _check_parser(commands)


def _check_parser(commands: Parsers) -> None:
    parser = commands.add_parser(
        "check",
        help="warn about likely mistakes in patterns",
        description="Warns about patterns that repeat each other, are too long, lack a field, are never found, or that "
        "the sanitiser would change. FILE is JSON Lines or TOML; without one the store is checked. Exits with 1 for an "
        "invalid pattern or file, and with --strict for any warning.",
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--strict", action="store_true", help="exit code 1 for any warning")
    parser.add_argument("--json", action="store_true", help="print one JSON object per warning, nothing else on stdout")
    add_store(parser)
    add_org(parser, f"what this org sees ({ORG})")
    parser.set_defaults(command=_check)


def _parser(commands: Parsers, name: str, command: object, help: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False)
    if name != "export":
        parser.add_argument(
            "--json", action="store_true", help="print one JSON object per line, nothing else on stdout"
        )
    add_store(parser)
    if name != "show":
        add_org(parser, f"what this org sees ({ORG})")
    parser.set_defaults(command=command)
    return parser


def _add_filter(parser: argparse.ArgumentParser, tiers: Sequence[Tier]) -> None:
    parser.add_argument("--tier", choices=tiers)
    parser.add_argument("--failure-type", metavar="TYPE", help="only for this kind of trouble")


def _list(arguments: argparse.Namespace) -> int:
    with opened(arguments) as store:
        found = store.list(
            arguments.org or ORG, arguments.tier, failure_type=arguments.failure_type, layer=not arguments.yours
        )
    if arguments.json:
        for pattern in found:
            say(json.dumps(_as_dict(pattern)))
    elif found:
        rows = [
            (
                pattern.id,
                pattern.tier,
                pattern.failure_type or "-",
                pattern.org_id or "-",
                origin(pattern),
                _text(pattern),
            )
            for pattern in found
        ]
        show(Table(title=_counted(found), head=("id", "tier", "trouble", "org", "from", "text"), rows=rows))
    else:
        say("no pattern")
    return OK


def _as_dict(pattern: Pattern) -> dict[str, object]:
    from reasonblocks.patterns import pattern_json

    return {**pattern_json(pattern), "origin": origin(pattern)}


def _counted(found: Sequence[Pattern]) -> str:
    return f"{len(found)} pattern{'' if len(found) == 1 else 's'}"


def _text(pattern: Pattern) -> str:
    """Return the pattern's advice in one line."""
    from reasonblocks.util.text import preview

    advice = [pattern.fields.get(name) for name in ("instruction", "intervention", "recommended_action")]
    return printable(preview(next((text for text in advice if isinstance(text, str)), ""), PREVIEW))


def _show(arguments: argparse.Namespace) -> int:
    from reasonblocks.render.guidance import render_pattern

    from ..authoring import as_toml

    with opened(arguments) as store:
        pattern = named(store, arguments.id)
    if arguments.json:
        say(json.dumps(_as_dict(pattern)))
        return OK
    say(f"# from: {origin(pattern)}")
    for line in as_toml([pattern]).splitlines():
        say(line[: len(line) - len(line.lstrip())] + printable(line))
    rendered = None if pattern.off else render_pattern(pattern.tier, arguments.model, pattern.fields)
    for line in (rendered or "").splitlines():
        say(f"# | {printable(line)}")
    return OK


@dataclass(frozen=True, slots=True)
class _Hit:
    """A pattern, the text's similarity to it, and its gate. `waits`: it is only found for its kind of trouble."""

    pattern: Pattern
    similarity: float
    gate: float
    waits: bool

    @property
    def found(self) -> bool:
        return self.similarity >= self.gate and not self.waits

    @property
    def row(self) -> tuple[str, ...]:
        waits = f"when a monitor says {self.pattern.failure_type}" if self.similarity >= self.gate else "-"
        found = "found" if self.found else waits
        return (f"{self.similarity:.2f}", found, self.pattern.id, self.pattern.failure_type or "-", _text(self.pattern))

    def as_dict(self) -> dict[str, object]:
        return {
            "id": self.pattern.id,
            "tier": self.pattern.tier,
            "similarity": self.similarity,
            "gate": self.gate,
            "found": self.found,
            "waits": self.waits,
        }


def _search(arguments: argparse.Namespace) -> int:
    tiers: Sequence[Tier] = (arguments.tier,) if arguments.tier else SEARCHED
    found = {tier: _hits(arguments, tier) for tier in tiers}
    if arguments.json:
        for hits in found.values():
            for hit in _shown(arguments, hits):
                say(json.dumps(hit.as_dict()))
        return OK
    for tier, hits in found.items():
        _say_hits(arguments, tier, hits)
    return OK


def _say_hits(arguments: argparse.Namespace, tier: Tier, hits: Sequence[_Hit]) -> None:
    from reasonblocks.engine.gates import TIER_RULES

    rule, org = TIER_RULES[tier], arguments.org or ORG
    if shown := _shown(arguments, hits):
        title = f"tier {tier} asks for {rule.similarity:g}; a run is told the {rule.top_k} best of those found"
        show(Table(title=title, head=("similarity", "", "id", "trouble", "text"), rows=[hit.row for hit in shown]))
    elif hits:
        nearest = f"the nearest is {hits[0].pattern.id} with {hits[0].similarity:.2f}"
        warn(
            f"tier {tier}: nothing is found; {nearest} (--all shows every one, --failure-type looks as a monitor does)"
        )
    else:
        kind = f" for {arguments.failure_type!r}" if arguments.failure_type else ""
        warn(f"tier {tier}: org {org!r} has no pattern{kind}")


def _shown(arguments: argparse.Namespace, hits: Sequence[_Hit]) -> list[_Hit]:
    return [hit for hit in hits if arguments.all or hit.found]


def _hits(arguments: argparse.Namespace, tier: Tier) -> list[_Hit]:
    """Return the patterns with their similarities, the most similar first."""
    from reasonblocks.engine.gates import TIER_RULES
    from reasonblocks.patterns import gate

    with opened(arguments) as store:
        own = {pattern.id: pattern for pattern in store.list(arguments.org or ORG, tier, layer=True)}
        ranked = [(own[trace.pattern.id], trace.similarity) for trace in _ranked(store, arguments, tier)]
    any_trouble = arguments.failure_type is None
    return [
        _Hit(pattern, similarity, gate(pattern, TIER_RULES[tier].similarity), pattern.requires_signal and any_trouble)
        for pattern, similarity in ranked
    ]


def _ranked(store: LocalStore, arguments: argparse.Namespace, tier: Tier) -> Sequence[ETrace]:
    """Return everything that a run of this org could find, ignoring the gates, the most similar first."""
    from reasonblocks.backends.local_store import LocalStore
    from reasonblocks.requests import Retrieve

    org = arguments.org or ORG
    patterns = store.list(org, tier, layer=True)
    query = Retrieve(
        tier=tier,
        texts=tuple(arguments.texts),
        top_k=max(1, len(patterns)),
        similarity=0.0,
        org_id=org,
        failure_type=arguments.failure_type,
        model="",
    )
    found = store.search(query)
    ids = {trace.pattern.id for trace in found}
    held_back = [
        replace(pattern, gate_threshold=None, requires_signal=False)
        for pattern in patterns
        if (pattern.gate_threshold or pattern.requires_signal) and pattern.id not in ids
    ]
    with LocalStore(patterns=held_back, embedder=store.embedder) as others:
        found += others.search(query)
    return sorted(found, key=lambda trace: (-trace.similarity, trace.pattern.id))


def _export(arguments: argparse.Namespace) -> int:
    from ..authoring import as_jsonl, as_toml

    with opened(arguments) as store:
        found = store.list(arguments.org or ORG, layer=arguments.starter)
    if arguments.org is None:
        warn(f"what org {ORG!r} sees; lessons that belong to another org are exported with --org")
    toml = arguments.toml or arguments.out.lower().endswith(".toml")
    text = as_toml(found) if toml else as_jsonl(found)
    write(arguments.out, text, toml=toml)
    if arguments.out != STDOUT:
        say(f"{arguments.out}: {_counted(found)}")
    return OK


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remark:
    """One finding of `check`, with the file, line and id that it concerns, if any. `error`: the pattern is invalid."""

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


def _check(arguments: argparse.Namespace) -> int:
    remarks = list(_of_files(arguments) if arguments.files else _of_store(arguments))
    for remark in remarks:
        say(json.dumps(remark.as_dict()) if arguments.json else str(remark))
    if not arguments.json and not remarks:
        say("nothing to look at")
    return PROBLEM if any(remark.error or arguments.strict for remark in remarks) else OK


def _of_files(arguments: argparse.Namespace) -> Iterator[_Remark]:
    """Yield remarks on the patterns of files, also on those that repeat each other or one in the store."""
    from ..authoring import read_patterns, warnings

    found: list[Pattern] = []
    for path in arguments.files:
        for item in read_patterns(path):
            if isinstance(item, RecordError):
                yield _Remark(text=item.reason, file=path, line=item.line, error=True)
                continue
            pattern = item.pattern
            found.append(pattern)
            yield from (_Remark(text=text, file=path, line=item.line, id=pattern.id) for text in warnings(pattern))
    ids = {pattern.id for pattern in found}
    stored = [pattern for pattern in _visible(arguments) if pattern.id not in ids]
    yield from _repeated([*found, *stored], ids)
    yield from _too_long([*found, *stored])


def _of_store(arguments: argparse.Namespace) -> Iterator[_Remark]:
    """Yield remarks on the store's own patterns. The starter library is only compared with them."""
    from ..authoring import warnings

    with opened(arguments) as store:
        own = {pattern.id for pattern in store.list(arguments.org or ORG)}
    visible = _visible(arguments)
    for pattern in visible:
        if pattern.id in own:
            yield from (_Remark(text=text, id=pattern.id) for text in warnings(pattern))
    yield from _repeated(visible, own)
    yield from _too_long(visible)


def _visible(arguments: argparse.Namespace) -> Sequence[Pattern]:
    with opened(arguments) as store:
        return store.list(arguments.org or ORG, layer=True)


def _repeated(patterns: Sequence[Pattern], judged: Iterable[str]) -> Iterator[_Remark]:
    from ..authoring import near_duplicates

    for near in near_duplicates(patterns):
        if near.first in judged or near.second in judged:
            how = "says the same" if near.same else f"is found by the same thoughts ({near.similarity:.2f})"
            yield _Remark(text=f"{how} as {near.second}: one of the two is enough", id=near.first)


def _too_long(patterns: Sequence[Pattern]) -> Iterator[_Remark]:
    from ..authoring import standing_bytes

    yield from (_Remark(text=line) for line in standing_bytes(patterns))
