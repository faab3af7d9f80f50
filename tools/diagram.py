"""Writes the diagram of the state machine in docs/how-it-works.md, drawn from the table that the machine runs on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reasonblocks.engine.fsm import ELSE, TABLE, Row, Thresholds
from reasonblocks.types import FSMState

PAGE = Path(__file__).parents[1] / "docs/how-it-works.md"
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


def with_diagram(page: str) -> str:
    """Return the page with the diagram between its two markers."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{diagram()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_diagram(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
