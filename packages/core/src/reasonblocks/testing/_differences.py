"""Compares two parity entries: decides which fields must be equal, and describes differences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Entry: TypeAlias = Mapping[str, Any]

NOT_COMPARED = {
    "framework": "names who decided",
    "mode": "names how it was called",
    "run": "the key of the lookup",
    "timestamp": "the clock's",
    "latency_ms": "the clock's",
    "overhead_ms": "the clock's",
}
"""Fields that cannot be equal, and why. All other fields are compared."""
LIVE_ONLY = (
    "attempts", "cache_read_tokens", "cache_write_tokens", "input_tokens", "model_asked", "model_id",
    "output_tokens", "tokens", "tool_calls",
)  # fmt: skip
"""Fields that record the model call, and no decision of steering."""
MISSING = "missing"
SHOWN = 300
"""The most characters of a value that a message shows."""


def run_differences(
    where: str, theirs: Sequence[Entry], core: Sequence[Entry], *, leave: Collection[str] = ()
) -> list[str]:
    """Return a line for each field that differs from the core's, and one if the lengths differ."""
    found = [f"{where}: {len(theirs)} entries, the core has {len(core)}"] if len(theirs) != len(core) else []
    for one, other in zip(theirs, core):
        place = f"{where}, entry {other['entry']}"
        found += [f"{place}: {text}" for text in entry_differences(one, other, leave=leave)]
    return found


def entry_differences(one: Entry, core: Entry, *, leave: Collection[str] = ()) -> list[str]:
    """Return a text for each difference, without the fields in `leave`; empty if the entries are equal."""
    left, right = dict(_flat(one)), dict(_flat(core))
    fields = [name for name in dict.fromkeys((*right, *left)) if name not in NOT_COMPARED and name not in leave]
    pairs = [(name, left.get(name, MISSING), right.get(name, MISSING)) for name in fields]
    return [
        f"{name} is {_shown(value)}, the core's is {_shown(wanted)}" for name, value, wanted in pairs if value != wanted
    ]


def _flat(value: Entry, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, part in value.items():
        if isinstance(part, Mapping):
            yield from _flat(part, f"{before}{name}.")
        else:
            yield f"{before}{name}", part


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"
