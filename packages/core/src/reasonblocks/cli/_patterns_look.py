"""`reasonblocks patterns list | show | search | export`: what is there, and what a text would find."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._json import evolve
from ..types._steering import TIERS
from ._files import ORG, STDOUT, add_org, add_store, named, opened, origin, write
from ._output import OK, Parsers, Table, printable, say, show, warn

if TYPE_CHECKING:
    from ..backends._local_store import LocalStore
    from ..types import ETrace, Pattern, Tier

PREVIEW = 70
"""Characters of a pattern's text that a row shows."""
SEARCHED: tuple[Tier, ...] = ("e1", "e2")


def add_to(commands: Parsers) -> None:
    parser = _parser(commands, "list", _list, "the patterns of the store, and the starter library under it")
    _add_filter(parser, TIERS)
    parser.add_argument("--yours", action="store_true", help="only what the store itself has")
    parser = _parser(commands, "show", _show, "one pattern, whole, and how a model reads it")
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--model", default="", metavar="MODEL", help="the model that reads it (a neutral form)")
    parser = _parser(commands, "search", _search, "how similar a text is to each pattern, and which would be found")
    parser.add_argument("texts", nargs="+", metavar="TEXT", help="what an agent said, one TEXT a step, the newest last")
    _add_filter(parser, SEARCHED)
    parser.add_argument("--all", action="store_true", help="also what is not similar enough to be found")
    parser = _parser(commands, "export", _export, "write the store's patterns as JSON Lines or TOML")
    parser.add_argument("--out", default=STDOUT, metavar="FILE", help="where to; FILE.toml is TOML (stdout)")
    parser.add_argument("--toml", action="store_true", help="TOML, whatever the file is called")
    parser.add_argument("--starter", action="store_true", help="with the starter library")


def _parser(commands: Parsers, name: str, command: object, help: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False)
    if name != "export":
        parser.add_argument("--json", action="store_true", help="one JSON object a line, nothing else on stdout")
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
        for one in found:
            say(json.dumps(_told(one)))
    elif found:
        rows = [
            (one.id, one.tier, one.failure_type or "-", one.org_id or "-", origin(one), _text(one)) for one in found
        ]
        show(Table(title=_counted(found), head=("id", "tier", "trouble", "org", "from", "text"), rows=rows))
    else:
        say("no pattern")
    return OK


def _told(pattern: Pattern) -> dict[str, object]:
    from .._patterns import pattern_json

    return {**pattern_json(pattern), "origin": origin(pattern)}


def _counted(found: Sequence[Pattern]) -> str:
    return f"{len(found)} pattern{'' if len(found) == 1 else 's'}"


def _text(pattern: Pattern) -> str:
    """What it advises, in one line."""
    from .._text import preview

    said = [pattern.fields.get(name) for name in ("instruction", "intervention", "recommended_action")]
    return printable(preview(next((text for text in said if isinstance(text, str)), ""), PREVIEW))


def _show(arguments: argparse.Namespace) -> int:
    from .._authoring import as_toml
    from .._render import render_pattern

    with opened(arguments) as store:
        pattern = named(store, arguments.id)
    if arguments.json:
        say(json.dumps(_told(pattern)))
        return OK
    say(f"# from: {origin(pattern)}")
    for line in as_toml([pattern]).splitlines():
        say(line[: len(line) - len(line.lstrip())] + printable(line))
    read = None if pattern.off else render_pattern(pattern.tier, arguments.model, pattern.fields)
    for line in (read or "").splitlines():
        say(f"# | {printable(line)}")
    return OK


@dataclass(frozen=True, slots=True)
class _Hit:
    """A pattern, how similar the text is to it, how similar it has to be, and whether its trouble was asked for."""

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
        told = {"similarity": self.similarity, "gate": self.gate, "found": self.found, "waits": self.waits}
        return {"id": self.pattern.id, "tier": self.pattern.tier, **told}


def _search(arguments: argparse.Namespace) -> int:
    tiers: Sequence[Tier] = (arguments.tier,) if arguments.tier else SEARCHED
    found = {tier: _hits(arguments, tier) for tier in tiers}
    if arguments.json:
        for hits in found.values():
            for one in _shown(arguments, hits):
                say(json.dumps(one.as_dict()))
        return OK
    for tier, hits in found.items():
        _say_hits(arguments, tier, hits)
    return OK


def _say_hits(arguments: argparse.Namespace, tier: Tier, hits: Sequence[_Hit]) -> None:
    from .._gates import TIER_RULES

    rule, org = TIER_RULES[tier], arguments.org or ORG
    if shown := _shown(arguments, hits):
        title = f"tier {tier} asks for {rule.similarity:g}; a run is told the {rule.top_k} best of those found"
        show(Table(title=title, head=("similarity", "", "id", "trouble", "text"), rows=[one.row for one in shown]))
    elif hits:
        nearest = f"the nearest is {hits[0].pattern.id} with {hits[0].similarity:.2f}"
        warn(
            f"tier {tier}: nothing is found; {nearest} (--all shows every one, --failure-type looks as a monitor does)"
        )
    else:
        kind = f" for {arguments.failure_type!r}" if arguments.failure_type else ""
        warn(f"tier {tier}: org {org!r} has no pattern{kind}")


def _shown(arguments: argparse.Namespace, hits: Sequence[_Hit]) -> list[_Hit]:
    return [one for one in hits if arguments.all or one.found]


def _hits(arguments: argparse.Namespace, tier: Tier) -> list[_Hit]:
    """The most similar first."""
    from .._gates import TIER_RULES
    from .._patterns import gate

    with opened(arguments) as store:
        own = {one.id: one for one in store.list(arguments.org or ORG, tier, layer=True)}
        found = _ranked(store, arguments, tier)
    seen = [(own[one.pattern.id], one.similarity) for one in found]
    asked = arguments.failure_type is not None
    return [
        _Hit(pattern, near, gate(pattern, TIER_RULES[tier].similarity), pattern.requires_signal and not asked)
        for pattern, near in seen
    ]


def _ranked(store: LocalStore, arguments: argparse.Namespace, tier: Tier) -> Sequence[ETrace]:
    """All that a run of this org could find, whatever their gates, the most similar first."""
    from .._requests import Retrieve
    from ..backends._local_store import LocalStore

    org = arguments.org or ORG
    seen = store.list(org, tier, layer=True)
    asked = Retrieve(
        tier=tier,
        texts=tuple(arguments.texts),
        top_k=max(1, len(seen)),
        similarity=0.0,
        org_id=org,
        failure_type=arguments.failure_type,
        model="",
    )
    found = store.search(asked)
    ids = {one.pattern.id for one in found}
    held_back = [
        evolve(one, gate_threshold=None, requires_signal=False)
        for one in seen
        if (one.gate_threshold or one.requires_signal) and one.id not in ids
    ]
    with LocalStore(patterns=held_back, embedder=store.embedder) as others:
        found += others.search(asked)
    return sorted(found, key=lambda one: (-one.similarity, one.pattern.id))


def _export(arguments: argparse.Namespace) -> int:
    from .._authoring import as_jsonl, as_toml

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
