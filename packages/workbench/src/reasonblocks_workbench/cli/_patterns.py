"""Implements `reasonblocks patterns`: commands that change the pattern store, and commands that only read it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from typer import Argument, Option, Typer

from reasonblocks.exceptions import ConfigError, ReasonBlocksError, RecordError
from reasonblocks.types.steering import Tier
from reasonblocks.util.files import STORE
from reasonblocks.util.text import count_noun

from ._calibrate import calibrate_curves
from .files import ORG, STDOUT, home_path, in_home, write
from .options import FlagError, Json, decimal
from .output import OK, PROBLEM, Table, printable, say, say_data, show, warn

if TYPE_CHECKING:
    from reasonblocks.backends.local_store import LocalStore
    from reasonblocks.types import ETrace, Pattern

STDIN_BYTES = 1024 * 1024
ID_HEX = 8
"""Characters of the content's hash in a generated id."""
PREVIEW = 70
"""Characters of a pattern's text in a row."""
Searched: TypeAlias = Literal["e1", "e2"]
SEARCHED: tuple[Searched, ...] = ("e1", "e2")
Origin: TypeAlias = Literal["starter", "yours", "yours, over the starter's", "starter, off"]

Store: TypeAlias = Annotated[str | None, Option(metavar="PATH", help=f"the file ({in_home(STORE)})")]
Org: TypeAlias = Annotated[str, Option(metavar="ORG", help="what this org sees")]
Trouble: TypeAlias = Annotated[str | None, Option(metavar="TYPE", help="only for this kind of trouble")]
OnlyTier: TypeAlias = Annotated[Tier | None, Option(help="only this tier")]

patterns = Typer(add_completion=False, help="Manage the pattern store: add, remove, list, search and check patterns.")


def open_store(path: str | None) -> LocalStore:
    """Open the store, with the starter library under it. Its file is created when a pattern is added."""
    from reasonblocks.backends.local_store import LocalStore
    from reasonblocks.patterns.starter import starter_patterns

    return LocalStore(home_path(path, STORE, "--store PATH"), layer=starter_patterns())


def origin(pattern: Pattern) -> Origin:
    from reasonblocks.patterns import content_of

    shipped = _shipped()
    if pattern.id not in shipped:
        return "yours"
    is_shipped = content_of(replace(pattern, off=False)) == content_of(switched_on(pattern.id))
    if pattern.off and (is_shipped or not pattern.fields):
        return "starter, off"
    return "starter" if is_shipped else "yours, over the starter's"


def is_off_by_default(pattern_id: str) -> bool:
    """Return True for a pattern of the starter library that is used only once it is switched on."""
    shipped = _shipped()
    return pattern_id in shipped and shipped[pattern_id].off


def switched_on(pattern_id: str) -> Pattern:
    """Return a pattern of the starter library as it is when it is used."""
    return replace(_shipped()[pattern_id], off=False)


def _shipped() -> dict[str, Pattern]:
    from reasonblocks.patterns.starter import starter_patterns

    return {starter.id: starter for starter in starter_patterns()}


def find_pattern(store: LocalStore, pattern_id: str) -> Pattern:
    """Return the pattern with that id. Raises `ReasonBlocksError` with the nearest id."""
    from reasonblocks.util.text import nearest

    found = store.get(pattern_id)
    if found is None:
        near = nearest(pattern_id, [pattern.id for pattern in store.list(ORG, layer=True)])
        hint = f"; did you mean {near!r}?" if near else "; `reasonblocks patterns list` names them"
        raise ReasonBlocksError(f"no pattern is called {pattern_id!r}{hint}")
    return found


# --- changing the store


@patterns.command("add")
def add(
    stdin: Annotated[Literal["-"] | None, Argument(metavar="-", help="read the pattern from stdin, as JSON")] = None,
    tier: Annotated[Tier | None, Option(help="the tier that it belongs to")] = None,
    failure_type: Annotated[
        str | None, Option(metavar="TYPE", help="the kind of trouble that it is for: loop, drift, ...")
    ] = None,
    kind: Annotated[
        list[str] | None,
        Option(metavar="KIND", help="the kind of finding that it is for: waiting, ...; repeatable"),
    ] = None,
    field: Annotated[
        list[str] | None, Option(metavar="NAME=TEXT", help="one of its texts: diagnosis=...; repeatable")
    ] = None,
    exemplar: Annotated[
        list[str] | None, Option(metavar="TEXT", help="a text by which it is found; repeatable")
    ] = None,
    gate: Annotated[
        float | None,
        Option(parser=decimal, metavar="0..1", help="its own similarity threshold instead of its tier's"),
    ] = None,
    id: Annotated[str | None, Option(metavar="ID", help="its id; by default made from its content")] = None,
    replaces: Annotated[bool, Option("--replace", help="replace an existing pattern with this id")] = False,
    as_json: Annotated[bool, Option("--json", help="print it as JSON")] = False,
    store: Store = None,
    org: Annotated[
        str | None,
        Option(metavar="ORG", help=f"only for this org; by default tiers e2 and e3 are for all orgs, e1 for {ORG!r}"),
    ] = None,
) -> int:
    """Add one pattern, from options or, with -, from a JSON object on stdin."""
    from ..authoring import as_jsonl, fields_for_any, warnings

    given = {
        "tier": tier,
        "failure_type": failure_type,
        "kinds": kind,
        "exemplars": exemplar,
        "gate_threshold": gate,
        "org_id": org,
        "id": id,
    }
    values = (_from_stdin() if stdin else {}) | {name: value for name, value in given.items() if value is not None}
    try:
        pattern = _pattern_of(values, field)
    except ConfigError as error:
        name = error.name.replace("pattern id", "id").rpartition(": ")[2]
        if name not in _FLAGS or (stdin and given[name] is None):
            raise
        raise ConfigError(_FLAGS[name], error.value, error.rule) from error
    if missing := fields_for_any(pattern):
        wanted, them = " and ".join(f"{name}=TEXT" for name in missing), "it" if len(missing) == 1 else "them"
        raise FlagError("--field", f"give {wanted}: without {them} no model is shown {pattern.id!r}")
    with open_store(store) as own:
        if own.get(pattern.id) is not None and not replaces:
            raise ReasonBlocksError(f"pattern {pattern.id!r} already exists: use --replace or another --id")
        own.add([pattern])
    for line in warnings(pattern):
        warn(f"{pattern.id}: {line}")
    if as_json:
        say_data(as_jsonl([pattern]))
    else:
        say(f"added {pattern.id}")
    return OK


_FLAGS = {
    "tier": "--tier",
    "failure_type": "--failure-type",
    "kinds": "--kind",
    "exemplars": "--exemplar",
    "gate_threshold": "--gate",
    "org_id": "--org",
    "id": "--id",
}
"""The options of `add`, by the fields of a pattern."""


def _pattern_of(values: dict[str, Any], texts: Sequence[str] | None) -> Pattern:
    from ..authoring import pattern_from

    if texts:
        values["fields"] = _fields(texts, values.get("fields"))
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


@patterns.command("import")
def import_files(
    files: Annotated[list[str], Argument(metavar="FILE")],
    skip_bad: Annotated[bool, Option("--skip-bad", help="add the valid patterns if some are invalid")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="report what would be added, and add nothing")] = False,
    as_json: Annotated[bool, Option("--json", help="print the counts as one JSON object")] = False,
    store: Store = None,
) -> int:
    """Add the patterns of JSON Lines or TOML files, or replace those with the same ids.

    If one is invalid, every fault is reported and nothing is added.
    """
    found, faults = _read(files)
    for fault in faults:
        warn(str(fault))
    if not found or (faults and not skip_bad):
        bad = f"{len(faults)} invalid, " if faults else ""
        advice = " (--skip-bad adds the others)" if found else ""
        warn(f"reasonblocks patterns import: {bad}nothing was added{advice}")
        return PROBLEM
    with open_store(store) as own:
        before = [own.get(pattern.id) for pattern in found]
        if not dry_run:
            own.add(found)
    counts = {
        "new": sum(pattern is None for pattern in before),
        "replaced": sum(pattern is not None for pattern in before),
        "skipped": len(faults),
        "dry_run": dry_run,
    }
    summary = f"{counts['new']} new, {counts['replaced']} replaced, {counts['skipped']} skipped"
    note = ": a dry run, nothing was added" if dry_run else ""
    say(json.dumps(counts) if as_json else f"{summary}{note}")
    return OK


def _read(files: Sequence[str]) -> tuple[list[Pattern], list[RecordError]]:
    """Read the patterns of all files; an id that is in two files is a fault in the second."""
    from ..authoring import fields_for_any, read_patterns

    found: dict[str, tuple[str, Pattern]] = {}
    faults: list[RecordError] = []
    for path in dict.fromkeys(files):
        for item in read_patterns(path):
            if isinstance(item, RecordError):
                faults.append(item)
            elif (first := found.get(item.pattern.id)) is not None:
                faults.append(RecordError(path, item.line, f"{item.pattern.id}: this id is in {first[0]}, too"))
            elif missing := fields_for_any(item.pattern):
                text = f"{item.pattern.id}: without {' and '.join(missing)} no model is shown it"
                faults.append(RecordError(path, item.line, text))
            else:
                found[item.pattern.id] = (path, item.pattern)
    return [pattern for _, pattern in found.values()], faults


@patterns.command("remove")
def remove(ids: Annotated[list[str], Argument(metavar="ID")], store: Store = None) -> int:
    """Remove patterns from the store; switch off those of the starter library.

    An unknown id is reported before anything is removed.
    """
    from reasonblocks.types import Pattern

    with open_store(store) as own:
        found = [find_pattern(own, name) for name in dict.fromkeys(ids)]
        for pattern in found:
            source, by_default = origin(pattern), is_off_by_default(pattern.id)
            if source == "starter" and not by_default:
                own.add([Pattern(id=pattern.id, tier=pattern.tier, failure_type=pattern.failure_type, off=True)])
            elif source != "starter, off":
                own.remove(pattern.id)
            over = source == "yours, over the starter's" and by_default
            say(f"{pattern.id}: {'yours is removed; that of the starter is off' if over else _DONE[source]}")
    return OK


_DONE = {
    "starter": "switched off; `reasonblocks patterns restore` switches it on",
    "starter, off": "is off already",
    "yours": "removed",
    "yours, over the starter's": "yours is removed; the starter's shows again",
}


@patterns.command("restore")
def restore(
    ids: Annotated[list[str] | None, Argument(metavar="ID")] = None,
    every: Annotated[bool, Option("--all", help="all of the starter library that are off")] = False,
    store: Store = None,
) -> int:
    """Switch on patterns that are off."""
    if bool(ids) == every:
        raise ReasonBlocksError(
            "name the patterns to switch on, or give --all; `reasonblocks patterns list` names them"
        )
    with open_store(store) as own:
        if every:
            found = [pattern for pattern in own.list(ORG, layer=True) if origin(pattern) == "starter, off"]
        else:
            found = [find_pattern(own, name) for name in dict.fromkeys(ids or ())]
        for pattern in found:
            if pattern.off:
                _switch_on(own, pattern)
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


# --- reading the store


@patterns.command("list")
def list_patterns(
    tier: OnlyTier = None,
    failure_type: Trouble = None,
    yours: Annotated[bool, Option("--yours", help="only the store's own patterns")] = False,
    as_json: Json = False,
    store: Store = None,
    org: Org = ORG,
) -> int:
    """List the patterns of the store and of the starter library."""
    with open_store(store) as own:
        found = own.list(org or ORG, tier, failure_type=failure_type, layer=not yours)
    if as_json:
        for pattern in found:
            say(json.dumps(_as_dict(pattern)))
    elif found:
        rows = [
            (one.id, one.tier, one.failure_type or "-", one.org_id or "-", origin(one), _text(one)) for one in found
        ]
        head = ("id", "tier", "trouble", "org", "from", "text")
        show(Table(title=count_noun(len(found), "pattern"), head=head, rows=rows))
    else:
        say("no pattern")
    return OK


def _as_dict(pattern: Pattern) -> dict[str, object]:
    from reasonblocks.patterns import pattern_json

    return {**pattern_json(pattern), "origin": origin(pattern)}


def _text(pattern: Pattern) -> str:
    """Return the pattern's advice in one line."""
    from reasonblocks.util.text import preview

    advice = [pattern.fields.get(name) for name in ("instruction", "intervention", "recommended_action")]
    return printable(preview(next((text for text in advice if isinstance(text, str)), ""), PREVIEW))


@patterns.command("show")
def show_pattern(
    id: Annotated[str, Argument(metavar="ID")],
    model: Annotated[str, Option(metavar="MODEL", help="the model that reads it (a neutral form)")] = "",
    as_json: Json = False,
    store: Store = None,
) -> int:
    """Show one whole pattern, and how a model reads it."""
    from reasonblocks.render.guidance import render_pattern

    from ..authoring import as_toml

    with open_store(store) as own:
        pattern = find_pattern(own, id)
    if as_json:
        say(json.dumps(_as_dict(pattern)))
        return OK
    say(f"# from: {origin(pattern)}")
    for line in as_toml([pattern]).splitlines():
        say(line[: len(line) - len(line.lstrip())] + printable(line))
    rendered = None if pattern.off else render_pattern(pattern.tier, model, pattern.fields)
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


@patterns.command("search")
def search(
    texts: Annotated[
        list[str], Argument(metavar="TEXT", help="what an agent said, one TEXT per step, the newest last")
    ],
    tier: Annotated[Searched | None, Option(help="only this tier")] = None,
    failure_type: Trouble = None,
    every: Annotated[bool, Option("--all", help="also show patterns that are not similar enough")] = False,
    as_json: Json = False,
    store: Store = None,
    org: Org = ORG,
) -> int:
    """Show how similar a text is to each pattern, and which would be found."""
    for one in (tier,) if tier else SEARCHED:
        hits = _hits(store, org or ORG, one, texts, failure_type)
        shown = [hit for hit in hits if every or hit.found]
        if as_json:
            for hit in shown:
                say(json.dumps(hit.as_dict()))
        else:
            _say_hits(one, org or ORG, failure_type, hits, shown)
    return OK


def _say_hits(tier: Tier, org: str, failure_type: str | None, hits: Sequence[_Hit], shown: Sequence[_Hit]) -> None:
    from reasonblocks.engine.gates import TIER_RULES

    rule = TIER_RULES[tier]
    if shown:
        title = f"tier {tier} asks for {rule.similarity:g}; a run is told the {rule.top_k} best of those found"
        show(Table(title=title, head=("similarity", "", "id", "trouble", "text"), rows=[hit.row for hit in shown]))
    elif hits:
        nearest = f"the nearest is {hits[0].pattern.id} with {hits[0].similarity:.2f}"
        warn(
            f"tier {tier}: nothing is found; {nearest} (--all shows every one, --failure-type looks as a monitor does)"
        )
    else:
        kind = f" for {failure_type!r}" if failure_type else ""
        warn(f"tier {tier}: org {org!r} has no pattern{kind}")


def _hits(path: str | None, org: str, tier: Tier, texts: Sequence[str], failure_type: str | None) -> list[_Hit]:
    """Return the patterns with their similarities, the most similar first."""
    from reasonblocks.engine.gates import TIER_RULES
    from reasonblocks.patterns import gate

    with open_store(path) as store:
        own = {pattern.id: pattern for pattern in store.list(org, tier, layer=True)}
        ranked = [(own[trace.pattern.id], trace.similarity) for trace in _ranked(store, org, tier, texts, failure_type)]
    return [
        _Hit(
            pattern,
            similarity,
            gate(pattern, TIER_RULES[tier].similarity),
            pattern.requires_signal and failure_type is None,
        )
        for pattern, similarity in ranked
    ]


def _ranked(
    store: LocalStore, org: str, tier: Tier, texts: Sequence[str], failure_type: str | None
) -> Sequence[ETrace]:
    """Return everything that a run of this org could find, ignoring the gates, the most similar first."""
    from reasonblocks.backends.local_store import LocalStore
    from reasonblocks.requests import Retrieve

    patterns = store.list(org, tier, layer=True)
    query = Retrieve(
        tier=tier,
        texts=tuple(texts),
        top_k=max(1, len(patterns)),
        similarity=0.0,
        org_id=org,
        failure_type=failure_type,
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


@patterns.command("export")
def export(
    out: Annotated[str, Option(metavar="FILE", help="the output file; FILE.toml is TOML, - is stdout")] = STDOUT,
    toml: Annotated[bool, Option("--toml", help="write TOML, whatever the file is called")] = False,
    starter: Annotated[bool, Option("--starter", help="include the starter library")] = False,
    store: Store = None,
    org: Annotated[str | None, Option(metavar="ORG", help=f"what this org sees ({ORG})")] = None,
) -> int:
    """Write the store's patterns as JSON Lines or TOML."""
    from ..authoring import as_jsonl, as_toml

    with open_store(store) as own:
        found = own.list(org or ORG, layer=starter)
    if org is None:
        warn(f"what org {ORG!r} sees; lessons that belong to another org are exported with --org")
    as_table = toml or out.lower().endswith(".toml")
    write(out, as_toml(found) if as_table else as_jsonl(found), toml=as_table)
    if out != STDOUT:
        say(f"{out}: {count_noun(len(found), 'pattern')}")
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


@patterns.command("check")
def check(
    files: Annotated[list[str] | None, Argument(metavar="FILE")] = None,
    strict: Annotated[bool, Option("--strict", help="exit code 1 for any warning")] = False,
    as_json: Json = False,
    store: Store = None,
    org: Org = ORG,
) -> int:
    """Warn about likely mistakes in patterns.

    Such patterns repeat each other, are too long, lack a field, are never found, or would be changed by the sanitiser.
    FILE is JSON Lines or TOML; without one the store is checked. Exits with 1 for an invalid pattern or file, and with
    --strict for any warning.
    """
    with open_store(store) as own:
        visible, ids = own.list(org or ORG, layer=True), {pattern.id for pattern in own.list(org or ORG)}
    remarks = list(_of_files(files, visible) if files else _of_store(visible, ids))
    for remark in remarks:
        say(json.dumps(remark.as_dict()) if as_json else str(remark))
    if not as_json and not remarks:
        say("nothing to look at")
    return PROBLEM if any(remark.error or strict for remark in remarks) else OK


def _of_files(files: Sequence[str], visible: Sequence[Pattern]) -> Iterator[_Remark]:
    """Yield remarks on the patterns of files, also on those that repeat each other or one in the store."""
    from ..authoring import read_patterns, warnings

    found: list[Pattern] = []
    for path in files:
        for item in read_patterns(path):
            if isinstance(item, RecordError):
                yield _Remark(text=item.reason, file=path, line=item.line, error=True)
                continue
            pattern = item.pattern
            found.append(pattern)
            yield from (_Remark(text=text, file=path, line=item.line, id=pattern.id) for text in warnings(pattern))
    ids = {pattern.id for pattern in found}
    stored = [pattern for pattern in visible if pattern.id not in ids]
    yield from _repeated([*found, *stored], ids)
    yield from _too_long([*found, *stored])


def _of_store(visible: Sequence[Pattern], own: set[str]) -> Iterator[_Remark]:
    """Yield remarks on the store's own patterns. The starter library is only compared with them."""
    from ..authoring import warnings

    for pattern in visible:
        if pattern.id in own:
            yield from (_Remark(text=text, id=pattern.id) for text in warnings(pattern))
    yield from _repeated(visible, own)
    yield from _too_long(visible)


def _repeated(patterns: Sequence[Pattern], judged: Iterable[str]) -> Iterator[_Remark]:
    from ..authoring import near_duplicates

    for near in near_duplicates(patterns):
        if near.first in judged or near.second in judged:
            how = "says the same" if near.same else f"is found by the same thoughts ({near.similarity:.2f})"
            yield _Remark(text=f"{how} as {near.second}: one of the two is enough", id=near.first)


def _too_long(patterns: Sequence[Pattern]) -> Iterator[_Remark]:
    from ..authoring import standing_bytes

    yield from (_Remark(text=line) for line in standing_bytes(patterns))


patterns.command("calibrate")(calibrate_curves)
