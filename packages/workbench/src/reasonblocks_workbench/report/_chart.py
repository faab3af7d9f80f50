"""Lays out the chart of a run: states, difficulty, monitors and texts, in columns of calls on one axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reasonblocks.util.text import count_noun

from .page import HARDEST, Kind, Row, RunPage
from .text import number, plain, stretches

WIDTH = 1008
"""The width of the chart on a wide screen, in pixels. On a narrower one its columns shrink, then it scrolls."""
WIDE = 860
"""The width from which states have the words that fit there; the style has the same number."""
ROOMY, NARROWEST = 24, 12
"""Pixels of a column: up to the first it shrinks; if the chart is too long for that, up to the second."""
MOST_COLUMNS = WIDTH // NARROWEST
"""A longer run has several calls in a column."""
FEWEST_COLUMNS = 10
"""The columns of a short run are as wide as those of a run with this number of calls."""
INSET = 0.04
"""The gap on each side of a column, as a part of it."""
LETTERS: Mapping[str, str] = {"INIT": "I", "FAST": "F", "NORMAL": "N", "SLOW": "S", "SKIP": "K", "END": "E"}
MARKS: Mapping[Kind, str] = {
    "monitor": "A", "lesson": "L", "rules": "R", "operator": "O", "budget": "B", "withheld": "W", "look": "2",
    "stop": "S", "asked": "P",
}  # fmt: skip
"""The letter of each text and of each end of a run."""
MARK_ORDER: tuple[Kind, ...] = ("stop", "operator", "monitor", "asked", "look", "lesson", "withheld", "budget", "rules")
"""The marks of one column, the most important first."""
LETTER_WIDTH = 7.4
LEVEL = 108
"""The height of the difficulty's row, in pixels."""
HIGHEST_LABEL, LABEL = 18.0, 12.0
"""The highest place of a threshold's name, below the name of its row, and the distance to the next."""
LANE = 22
QUIET = 0.25
"""A monitor that never fires and never scores more has no row of its own."""
FAINT = 0.1
"""A score up to this is not drawn."""
MOST_LANES = 40
"""Monitors in a chart; the table of steps has all of a call."""
MOST_MARKS = 3
"""Marks above each other in one column."""
TICKS = (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A stretch of calls in one state; `narrow` is its word if the chart is as narrow as it gets."""

    x: float
    width: float
    state: str
    word: str
    narrow: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A monitor's score in a column."""

    x: float
    width: float
    opacity: float
    fired: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The row of one monitor; `peak` is its highest score."""

    name: str
    peak: str
    times: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The mark of a text, or of the run's end, before a call; `level` counts the marks above it in its column."""

    x: float
    level: int
    kind: Kind
    letter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its first call, its place, and its text for a pointer."""

    x: float
    call: int
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    y: float
    label_y: float
    """The base line of its name, which keeps a distance from the others."""
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The geometry of a chart: across in hundredths of its width, down in pixels; each row begins at its own 0."""

    narrowest: int
    """The width in pixels below which the chart scrolls."""
    width: float
    """The part that has columns; a short run leaves the rest empty."""
    column: float
    each: int
    """Calls in a column."""
    ticks: tuple[tuple[float, str], ...]
    bands: tuple[Band, ...]
    lines: tuple[str, ...]
    """The points of each stretch of the difficulty without a gap."""
    dots: tuple[tuple[float, float], ...]
    thresholds: tuple[Threshold, ...]
    lanes: tuple[Lane, ...]
    quiet: tuple[str, ...]
    """Monitors without a row."""
    gaps: tuple[Band, ...]
    """The stretches of calls that were not evaluated."""
    marks: tuple[Mark, ...]
    columns: tuple[Column, ...]
    description: str

    @property
    def levels(self) -> int:
        """The most marks in one column."""
        return max((mark.level + 1 for mark in self.marks), default=1)

    @property
    def radius(self) -> float:
        """The radius of a mark in pixels: that of half a column, at most 9."""
        return min(9.0, self.narrowest * self.column / 200)

    @property
    def fires(self) -> bool:
        return any(cell.fired for lane in self.lanes for cell in lane.cells)


def chart_of(page: RunPage) -> Chart:
    """Return the chart of a run; without rows it is empty."""
    rows = page.rows
    each = max(1, -(-len(rows) // MOST_COLUMNS))
    groups = [rows[at : at + each] for at in range(0, len(rows), each)]
    slots = max(FEWEST_COLUMNS, len(groups))
    column, narrowest = 100 / slots, min(WIDTH, ROOMY * slots)
    lanes = list(_lanes(groups, column))
    points = list(_points(groups, column))
    return Chart(
        narrowest=narrowest,
        width=round(column * len(groups), 3),
        column=round(column, 3),
        each=each,
        ticks=tuple(_ticks(rows, each, column, narrowest)),
        bands=tuple(_bands(groups, column, narrowest)),
        lines=tuple(_lines(points)),
        dots=tuple(point for point in points if point is not None) if len(groups) <= 60 else (),
        thresholds=_thresholds(page),
        lanes=tuple(lane for lane in lanes if lane.cells),
        quiet=tuple(lane.name for lane in lanes if not lane.cells),
        gaps=tuple(_gaps(groups, column)),
        marks=tuple(_marks(groups, column)),
        columns=tuple(_columns(groups, column, unheard=page.unheard)),
        description=description(page),
    )


def _hardest(group: Sequence[Row]) -> str:
    order = {state: at for at, state in enumerate(HARDEST)}
    return min((row.state for row in group), key=lambda state: order.get(state, len(order)))


def _placed(first: int, count: int, column: float) -> tuple[float, float]:
    """Return the place and width of some columns, with a gap on both sides."""
    return round((first + INSET) * column, 3), round((count - 2 * INSET) * column, 3)


def _bands(groups: Sequence[Sequence[Row]], column: float, narrowest: int) -> Iterator[Band]:
    states = tuple(map(_hardest, groups))
    for first, last in stretches(states):
        state, (x, width) = states[first], _placed(first, last - first + 1, column)
        letter = LETTERS.get(state, "?" if state else "")
        word, narrow = (
            state if len(state) * LETTER_WIDTH + 10 <= width * whole / 100 and state in LETTERS else letter
            for whole in (WIDE, min(WIDE, narrowest))
        )
        yield Band(x=x, width=width, state=state if state in LETTERS else "none", word=word, narrow=narrow)


def _gaps(groups: Sequence[Sequence[Row]], column: float) -> Iterator[Band]:
    unjudged = tuple("x" if any(row.unjudged for row in group) else "" for group in groups)
    for first, last in stretches(unjudged):
        if unjudged[first]:
            yield Band(x=round(first * column, 3), width=round((last - first + 1) * column, 3), state="", word="",
                       narrow="")  # fmt: skip


def _y(difficulty: float) -> float:
    return round((1 - min(1.0, max(0.0, difficulty))) * (LEVEL - 12) + 6, 1)


def _points(groups: Sequence[Sequence[Row]], column: float) -> Iterator[tuple[float, float] | None]:
    for at, group in enumerate(groups):
        known = [row.entry.difficulty for row in group if row.entry.difficulty is not None]
        yield (round((at + 0.5) * column, 3), _y(max(known))) if known else None


def _lines(points: Sequence[tuple[float, float] | None]) -> Iterator[str]:
    line: list[str] = []
    for point in (*points, None):
        if point is not None:
            line.append(f"{point[0]:g},{point[1]:g}")
        elif line:
            yield " ".join(line)
            line = []


def _thresholds(page: RunPage) -> tuple[Threshold, ...]:
    named = (("SKIP", page.thresholds.skip_threshold), ("SLOW", page.thresholds.slow_threshold),
             ("FAST", page.thresholds.fast_threshold))  # fmt: skip
    lines = sorted(((_y(value), name, number(value)) for name, value in named), key=lambda line: line[0])
    labels = _apart([y + 3.5 for y, _, _ in lines])
    return tuple(
        Threshold(y=y, label_y=round(label, 1), name=name, value=value)
        for (y, name, value), label in zip(lines, labels, strict=True)
    )


def _apart(places: Sequence[float]) -> list[float]:
    """Return the places of labels, in their order, moved as far as they need to be to stand apart in their row."""
    found, top = list[float](), HIGHEST_LABEL
    for place in places:
        found.append(max(place, top))
        top = found[-1] + LABEL
    bottom = float(LEVEL + 2)
    for at in reversed(range(len(found))):
        found[at] = min(found[at], bottom)
        bottom = found[at] - LABEL
    return found


def _lanes(groups: Sequence[Sequence[Row]], column: float) -> Iterator[Lane]:
    """Yield the monitors in their order; of very many, those that have fired or scored most."""
    peaks, times = dict[str, float](), Counter[str]()
    scores = [_scores(group) for group in groups]
    for group, highest in zip(groups, scores, strict=True):
        for name, score in highest.items():
            peaks[name] = max(score, peaks.get(name, score))
        times.update(name for row in group for name in dict.fromkeys(row.entry.monitors_fired))
    most = sorted(peaks, key=lambda name: (-times[name], -peaks[name]))[:MOST_LANES]
    for name in (name for name in peaks if name in {*most}):
        shown = peaks[name] > QUIET or times[name] > 0
        yield Lane(name=name, peak=number(peaks[name]), times=times[name],
                   cells=tuple(_cells(name, groups, scores, column)) if shown else ())  # fmt: skip


def _scores(group: Sequence[Row]) -> dict[str, float]:
    """Return each monitor's highest score in a group of calls."""
    found: dict[str, float] = {}
    for row in group:
        for name in (*row.scores, *row.entry.monitors_fired):
            found[name] = max(row.scores.get(name, 0.0), found.get(name, 0.0))
    return found


def _cells(
    name: str, groups: Sequence[Sequence[Row]], scores: Sequence[Mapping[str, float]], column: float
) -> Iterator[Cell]:
    for at, group in enumerate(groups):
        score = scores[at].get(name)
        fired = score is not None and any(name in row.entry.monitors_fired for row in group)
        if score is not None and (score > FAINT or fired):
            x, width = _placed(at, 1, column)
            opacity = round(max(0.06, min(1.0, max(0.0, score)) ** 1.5), 2)
            yield Cell(x=x, width=width, fired=fired, opacity=opacity)


def kinds_of(row: Row) -> list[Kind]:
    """Return the marks of a row, the most important first."""
    found: set[Kind] = {told.kind for told in row.told}
    found |= {"stop"} if row.entry.stop or row.entry.withheld_stop else set()
    found |= {"asked"} if row.entry.interrupt or row.entry.withheld_interrupt else set()
    return [kind for kind in MARK_ORDER if kind in found]


def _marks(groups: Sequence[Sequence[Row]], column: float) -> Iterator[Mark]:
    for at, group in enumerate(groups):
        found = {kind for row in group for kind in kinds_of(row)}
        for level, kind in enumerate([kind for kind in MARK_ORDER if kind in found][:MOST_MARKS]):
            yield Mark(x=round((at + 0.5) * column, 3), level=level, kind=kind, letter=MARKS[kind])


def _ticks(rows: Sequence[Row], each: int, column: float, narrowest: int) -> Iterator[tuple[float, str]]:
    """Yield the places and numbers of round calls, as close as their numbers fit where the chart is narrowest."""
    if not rows:
        return
    call = column / each
    apart = (len(str(rows[-1].number)) * LETTER_WIDTH + 6) * 100 / narrowest
    step = next((tick for tick in TICKS if tick * call >= apart), TICKS[-1])
    end, last = call * len(rows) + column / 2, -apart
    for at, row in enumerate(rows):
        middle = (at + 0.5) * call
        if row.number % step == 0 and middle - last >= apart - 1e-6 and middle + apart / 2 <= max(end, 100.0):
            last = middle
            yield round(max(middle, len(str(row.number)) * LETTER_WIDTH * 50 / narrowest), 3), str(row.number)


def _columns(groups: Sequence[Sequence[Row]], column: float, *, unheard: bool) -> Iterator[Column]:
    for at, group in enumerate(groups):
        first = group[0]
        label = _label(first, unheard=unheard) if len(group) == 1 else _span(group)
        yield Column(x=round(at * column, 3), call=first.number, label=label)


def name_of(row: Row) -> str:
    return "the end" if row.final else f"call {row.number}"


def _label(row: Row, *, unheard: bool) -> str:
    told, stopped = ("would be told", "would be stopped") if unheard else ("told", "stopped")
    said = [f"{told.who}{' (withheld)' if told.withheld else ''}" for told in row.told]
    words = [name_of(row), row.state or "not decided"]
    words += [f"difficulty {number(row.entry.difficulty)}"] if row.entry.difficulty is not None else []
    words += [f"fired: {', '.join(map(plain, row.entry.monitors_fired))}"] if row.entry.monitors_fired else []
    words += ["not evaluated"] if row.unjudged else []
    words += [f"{told}: {', '.join(map(plain, said))}"] if said else []
    stop = row.entry.stop or row.entry.withheld_stop
    words += [f"{stopped}: {plain(stop)}"] if stop else []
    return " · ".join(words)


def _span(group: Sequence[Row]) -> str:
    known = [row.entry.difficulty for row in group if row.entry.difficulty is not None]
    fired = dict.fromkeys(plain(name) for row in group for name in row.entry.monitors_fired)
    told = sum(len(row.interventions) for row in group)
    words = [f"calls {group[0].number} to {group[-1].number}", _hardest(group) or "not decided"]
    words += [f"difficulty up to {number(max(known))}"] if known else []
    words += [f"fired: {', '.join(fired)}"] if fired else []
    words += ["not all evaluated"] if any(row.unjudged for row in group) else []
    words += [count_noun(told, "text")] if told else []
    return " · ".join(words)


def description(page: RunPage) -> str:
    """Return a description of the chart in words; the table of steps has every value."""
    known = [(row.entry.difficulty, row.number) for row in page.rows if row.entry.difficulty is not None]
    words = [f"{count_noun(page.steps, 'step')}."]
    if page.states:
        words.append(f"States reached: {', '.join(page.states)}.")
    if known:
        highest, call = max(known)
        words.append(f"The highest difficulty is {number(highest)}, before call {call}.")
    fired: dict[str, list[int]] = {name: [] for name in page.fired[:MOST_LANES]}
    for row in page.rows:
        for name in fired.keys() & {*row.entry.monitors_fired}:
            fired[name].append(row.number)
    words += [f"{plain(name)} fired before {_calls(calls)}." for name, calls in fired.items()]
    gaps = [row.number for row in page.rows if row.unjudged]
    words += [f"Not evaluated: {_calls(gaps)}."] if gaps else []
    told = [row.number for row, _ in page.told]
    words.append(f"Texts before {_calls(told)}." if told else "No text.")
    return " ".join(words)


def _calls(calls: Sequence[int]) -> str:
    shown = list(dict.fromkeys(calls))
    more = f" and {len(shown) - 12} more" if len(shown) > 12 else ""
    return f"{'call' if len(shown) == 1 else 'calls'} {', '.join(map(str, shown[:12]))}{more}"
