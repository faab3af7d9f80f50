"""Which fields of two parity entries have to be equal, and how a difference is told."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Entry: TypeAlias = Mapping[str, Any]

NOT_COMPARED = {
    "framework": "says who decided",
    "mode": "says how it was called",
    "run": "both are looked up by it",
    "timestamp": "the clock's",
    "latency_ms": "the clock's",
    "overhead_ms": "the clock's",
}
"""Fields that cannot be equal, and why. Everything else that an entry has is compared."""
LIVE_ONLY = (
    "attempts", "cache_read_tokens", "cache_write_tokens", "input_tokens", "model_asked", "model_id",
    "output_tokens", "tokens", "tool_calls",
)  # fmt: skip
"""What the model call itself did, and steering did not decide."""
MISSING = "missing"
SHOWN = 300
"""Characters of a value that a message shows."""


def run_differences(
    where: str, theirs: Sequence[Entry], core: Sequence[Entry], *, leave: Collection[str] = ()
) -> list[str]:
    """A line for each field of one run that is not the core's, and for a run of another length."""
    found = [f"{where}: {len(theirs)} entries, the core has {len(core)}"] if len(theirs) != len(core) else []
    for one, other in zip(theirs, core):
        place = f"{where}, entry {other['entry']}"
        found += [f"{place}: {text}" for text in entry_differences(one, other, leave=leave)]
    return found


def entry_differences(one: Entry, core: Entry, *, leave: Collection[str] = ()) -> list[str]:
    """Empty: the entries are equal, but for the fields of `leave`."""
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
