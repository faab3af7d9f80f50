"""Draws docs/steered-run.svg from the demo's two runs: `python examples/picture.py > docs/steered-run.svg`."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import PurePosixPath
from xml.sax.saxutils import escape, quoteattr

from two_runs import MAX_CALLS, Run, Seen, both_runs

from reasonblocks import Thresholds

WIDTH = 920
LEFT, RIGHT = 62, 896
SLOT = (RIGHT - LEFT) / MAX_CALLS
BAR = 26
QUOTE_TOP, QUOTE_LINE, QUOTE_CHARS = 272, 17, 104
"""The top of the quoted guidance, the height of a line in it, and the characters of a line."""
INK, QUIET, LINE, PAPER = "#1f2933", "#5b6672", "#d5dae1", "#fbfcfd"
HEARD, FIRED, BAD = "#0b7a4b", "#c2570c", "#b42318"
TINTS = {
    "INIT": ("#eceff3", "#64707d"),
    "FAST": ("#e0f2fe", "#0369a1"),
    "NORMAL": ("#e3edfb", "#2f6fb7"),
    "SLOW": ("#f3e5f9", "#8e3bb0"),
    "SKIP": ("#fde4e1", "#b42318"),
    "END": ("#eceff3", "#64707d"),
}
"""The colours of each state: of its band, and of its bars and name."""
DOES = {"read_file": "read", "edit_file": "edit", "run_tests": "tests"}


def picture(plain: Run, steered: Run) -> str:
    call = steered.heard[0]
    quote = [part for line in steered.guidance[call].splitlines() for part in textwrap.wrap(line, QUOTE_CHARS)]
    below = QUOTE_TOP + QUOTE_LINE * len(quote) + 32
    height = below + 252
    parts = [
        tag("title", "A steered run beside a plain one"),
        tag("desc", f"Steered: {ending(steered)}. Plain: {ending(plain)}."),
        tag("rect", x=0.5, y=0.5, width=WIDTH - 1, height=height - 1, rx=10, fill=PAPER, stroke=LINE),
        *panel(steered, "Steered", ending(steered), top=62, height=140),
        *arrows(steered, top=62),
        *quotation(quote, call, steered.steps[call - 1].judged.fired),
        *panel(plain, "Plain", f"{ending(plain)} (evaluated afterwards by replay)", top=below + 66, height=92),
        *legend(height - 20),
    ]
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    font = "font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" {font}>'
    return "\n".join([head, *parts, "</svg>"])


def ending(run: Run) -> str:
    tests = "with all tests passing" if run.fixed else "with the tests still failing"
    return f"{'was stopped at' if run.at_limit else 'ended after'} {len(run.steps)} model calls, {tests}"


def panel(run: Run, name: str, end: str, *, top: float, height: float) -> Iterator[str]:
    yield text(LEFT, top - 32, name, size=16, weight=700)
    yield text(LEFT + 76, top - 32, end, fill=HEARD if run.fixed else BAD, size=13)
    yield from bands(run, top, height)
    yield from scale(top, height)
    for step, seen in enumerate(run.steps):
        yield from bar(step, seen, top, height)
        yield from labels(step, seen, top + height + 14)


def bands(run: Run, top: float, height: float) -> Iterator[str]:
    """Draw a band with the state's name for each stretch of steps in one state."""
    for state, stretch in groupby(range(len(run.steps)), key=lambda step: run.steps[step].judged.state):
        steps = list(stretch)
        tint, ink = TINTS[state]
        wide = SLOT * len(steps) - 2
        yield tag("rect", x=start(steps[0]) + 1, y=top - 16, width=wide, height=height + 16, rx=4, fill=tint)
        yield text(start(steps[0]) + 9, top - 4, state, fill=ink, size=10, weight=700)


def scale(top: float, height: float) -> Iterator[str]:
    """Draw the scale: 0, 1, and the thresholds between which a run is NORMAL."""
    limits = Thresholds()
    for value in (0.0, limits.fast_threshold, limits.slow_threshold, 1.0):
        y = top + height * (1 - value)
        dashes = "3 3" if 0 < value < 1 else "none"
        yield tag("line", x1=LEFT, x2=RIGHT, y1=y, y2=y, stroke="#9aa5b1", stroke_width=0.7, stroke_dasharray=dashes)
        yield text(LEFT - 8, y + 3.5, f"{value:g}", fill=QUIET, size=10, anchor="end")
    yield text(LEFT - 8, top + height + 14, "step", fill=QUIET, size=10, anchor="end")
    along = f"rotate(-90 20 {top + height / 2:g})"
    yield text(20, top + height / 2, "difficulty", fill=QUIET, size=11, anchor="middle", transform=along)


def bar(step: int, seen: Seen, top: float, height: float) -> Iterator[str]:
    difficulty = seen.judged.difficulty or 0.0
    tall = max(1.5, height * difficulty)
    ink = TINTS[seen.judged.state][1]
    yield tag("rect", x=middle(step) - BAR / 2, y=top + height - tall, width=BAR, height=tall, rx=2, fill=ink)
    if seen.judged.fired:
        yield diamond(middle(step), min(top + height - tall + 12, top + height - 10), FIRED)


def labels(step: int, seen: Seen, y: float) -> Iterator[str]:
    """Write the step's number, its action, and the file or the result."""
    yield text(middle(step), y, str(step), fill=QUIET, size=9, anchor="middle")
    for at, line in enumerate(label_lines(seen)):
        fill = HEARD if line == "OK" else BAD if line == "FAILED" else QUIET if at else INK
        yield text(middle(step), y + 13 + 12 * at, line, fill=fill, size=10 if at == 0 else 9, anchor="middle")


def label_lines(seen: Seen) -> list[str]:
    tool, _, _ = seen.did[0].partition(" ")
    paths = [PurePosixPath(did.partition(" ")[2]).stem for did in seen.did]
    if tool == "run_tests":
        return [DOES[tool], seen.came[0].partition(" ")[0]]
    return [DOES.get(tool, tool), *(word for stem in paths for word in stem.split("_"))]


def arrows(run: Run, *, top: float) -> Iterator[str]:
    """Where guidance came; from the first finding a line leads to its quotation."""
    x = start(run.heard[0])
    yield tag("line", x1=x, x2=x, y1=top - 12, y2=QUOTE_TOP, stroke=HEARD, stroke_width=1.6, stroke_dasharray="5 3")
    for call in run.guidance:
        yield arrow(start(call), top - 22, HEARD if call in run.heard else QUIET)


def quotation(lines: list[str], call: int, fired: Sequence[str]) -> Iterator[str]:
    why = f"{' and '.join(fired)} fired on step {call - 1}" if fired else "the monitors' scores together stayed high"
    title = f"Before step {call} the model read this, because {why}:"
    high = QUOTE_LINE * len(lines) + 32
    yield tag("rect", x=LEFT, y=QUOTE_TOP, width=RIGHT - LEFT, height=high, rx=6, fill="#ecf8f1", stroke=HEARD)
    yield text(LEFT + 14, QUOTE_TOP + 19, title, fill=HEARD, size=12, weight=700)
    for at, line in enumerate(lines):
        y = QUOTE_TOP + 38 + QUOTE_LINE * at
        yield text(LEFT + 14, y, line, size=12.5, family="ui-monospace, Menlo, Consolas, monospace")


def legend(y: float) -> Iterator[str]:
    yield diamond(LEFT + 7, y - 4, FIRED)
    yield text(LEFT + 20, y, "a monitor fired", fill=QUIET)
    yield arrow(LEFT + 128, y - 9, HEARD)
    yield text(LEFT + 139, y, "its finding reached the model", fill=QUIET)
    yield arrow(LEFT + 324, y - 9, QUIET)
    yield text(LEFT + 335, y, "standing rules", fill=QUIET)
    real = "The model is scripted; the agent, its tools and the steering are real."
    yield text(RIGHT, y, real, fill=QUIET, anchor="end")


# --- SVG


def arrow(x: float, y: float, fill: str) -> str:
    return tag("path", d=f"M{x - 6:.1f} {y:.1f}h12l-6 10z", fill=fill)


def diamond(x: float, y: float, fill: str) -> str:
    return tag("path", d=f"M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z", fill=fill, stroke=PAPER, stroke_width=1.5)


def start(step: int) -> float:
    return LEFT + SLOT * step


def middle(step: int) -> float:
    return start(step) + SLOT / 2


def text(
    x: float,
    y: float,
    said: str,
    *,
    fill: str = INK,
    size: float = 11,
    weight: int = 400,
    anchor: str = "start",
    family: str | None = None,
    transform: str | None = None,
) -> str:
    extra = {"font_family": family, "transform": transform}
    given = {name: value for name, value in extra.items() if value}
    return tag("text", said, x=x, y=y, fill=fill, font_size=size, font_weight=weight, text_anchor=anchor, **given)


def tag(name: str, said: str = "", **attributes: str | float) -> str:
    """Numbers with one decimal: the same picture on every machine."""
    given = {key.replace("_", "-"): value for key, value in attributes.items()}
    shown = [
        f"{key}={quoteattr(value if isinstance(value, str) else f'{round(value, 1):g}')}"
        for key, value in given.items()
    ]
    return f"<{' '.join([name, *shown])}>{escape(said)}</{name}>"


if __name__ == "__main__":
    sys.stdout.write(picture(*both_runs()) + "\n")
