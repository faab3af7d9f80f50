"""Writes README.md's diagram of the state machine from the machine's own table of transitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reasonblocks._fsm import ELSE, TABLE, Row, Thresholds
from reasonblocks.types import FSMState

README = Path(__file__).parents[1] / "README.md"
BEGIN = "<!-- diagram: written by tools/diagram.py -->\n"
END = "<!-- diagram: end -->\n"
DEFAULTS = Thresholds()


def diagram() -> str:
    """Return the diagram as a Mermaid code block."""
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> INIT", *arrows(), "```", ""])


def arrows() -> Iterator[str]:
    for state, rows in TABLE.items():
        yield from (arrow(state, row.to, condition(row)) for row in rows)
        if state in ELSE:
            yield arrow(state, ELSE[state], "always")


def arrow(start: FSMState, end: FSMState, why: str) -> str:
    return f"    {start.value} --> {end.value}: {why}"


def condition(row: Row) -> str:
    """Return the row's condition with the default numbers."""
    steps = "newest" if row.window == "newest" else f"last {getattr(DEFAULTS, row.window)} all"
    return f"{steps} {row.side} {getattr(DEFAULTS, row.bound)}"


def with_diagram(readme: str) -> str:
    """Return the README with the diagram between its two markers."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{diagram()}{END}{after}"


if __name__ == "__main__":
    README.write_text(with_diagram(README.read_text(encoding="utf-8")), encoding="utf-8")
