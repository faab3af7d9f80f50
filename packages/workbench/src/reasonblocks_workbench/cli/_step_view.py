"""Draws one recorded step: its thought, calls and results."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

from reasonblocks.account.calls import Kind
from reasonblocks.account.results import read
from reasonblocks.types import JSON, Step, ToolCall, ToolResult
from reasonblocks.util.json import canonical

from ._layout import cells, clipped, fitted, rows
from ._paint import Canvas, Line
from .output import clean

THOUGHT, ARGUMENTS, RESULT = (4, 1), (2, 0), (3, 2)
"""Rows at the start and at the end of each text that are shown of a long one."""
INDENT, DEEPER = "  ", "    "


class StepView:
    """Draws steps on a canvas. `full` shows texts whole."""

    def __init__(self, canvas: Canvas, *, full: bool) -> None:
        self.canvas, self.full = canvas, full

    def lines(self, step: Step) -> Iterator[Line]:
        """Yield the thought, then each call with its result."""
        yield from self._thought(step)
        results = _by_call(step)
        for index, call in enumerate(step.tool_calls):
            yield from self._call(call)
            for result in results.pop(index, ()):
                yield from self._result(result)
        for result in chain.from_iterable(results.values()):
            yield ((INDENT, ""), (f"{self.canvas.glyphs.call} ", "dim"), (clean(result.name or "a result"), "dim"))
            yield from self._result(result)

    def line(self, step: Step) -> str:
        """Return the step in one row: its calls, or what it thinks if it calls nothing."""
        calls = " + ".join(f"{call.name} {_arguments(call.arguments, 60)}" for call in step.tool_calls)
        return fitted(calls or step.thought or step.reasoning, self.canvas.width - len(INDENT))

    def _thought(self, step: Step) -> Iterator[Line]:
        if step.thought.strip():
            yield from self._text(step.thought, INDENT, "", THOUGHT)
        if step.reasoning.strip() and (self.full or not step.thought.strip()):
            yield ((INDENT, ""), ("reasoning", "dim italic"))
            yield from self._text(step.reasoning, INDENT, "italic", THOUGHT)

    def _call(self, call: ToolCall) -> Iterator[Line]:
        name, mark = clean(call.name), f"{self.canvas.glyphs.call} "
        head: Line = ((INDENT, ""), (mark, "cyan"), (name, "bold cyan"))
        if self.full:
            yield head
            yield from self._whole(call.arguments)
            return
        room = self.canvas.width - cells(f"{INDENT}{mark}{name}  ")
        text = _arguments(call.arguments, 2 * (self.canvas.width - len(DEEPER)))
        if cells(text) <= room:
            yield (*head, ("  ", ""), (text, "")) if text else head
            return
        yield head
        yield from self._text(text, DEEPER, "", ARGUMENTS)

    def _whole(self, arguments: JSON) -> Iterator[Line]:
        given = arguments if isinstance(arguments, dict) else {"": arguments}
        for key, value in given.items():
            text = value if isinstance(value, str) else canonical(value)
            if key and len(given) > 1:
                yield ((DEEPER, ""), (f"{clean(key)}:", "dim"))
            yield from self._text(text, DEEPER, "", ARGUMENTS)

    def _result(self, result: ToolResult) -> Iterator[Line]:
        wrong = is_error(result)
        edge: Line = ((DEEPER, ""), (f"{self.canvas.glyphs.edge} ", "red" if wrong else "dim"))
        if wrong:
            yield (*edge, ("error", "bold red"))
        if not result.output.strip():
            yield (*edge, ("no output", "dim"))
        for row in self._rows(result.output, self.canvas.width - len(DEEPER) - 2, RESULT):
            yield (*edge, (row, "dim"))

    def _text(self, text: str, indent: str, style: str, limits: tuple[int, int]) -> Iterator[Line]:
        for row in self._rows(text, self.canvas.width - len(indent), limits):
            yield ((indent, ""), (row, style))

    def _rows(self, text: str, width: int, limits: tuple[int, int]) -> Iterable[str]:
        return rows(text, width) if self.full else clipped(text, width, *limits)


def is_error(result: ToolResult) -> bool:
    """Return True for a result that is an error, or announces one where the recording does not know."""
    return read(result, kind=Kind(frozenset())).failed if result.is_error is None else result.is_error


def _by_call(step: Step) -> dict[int, list[ToolResult]]:
    """Return the results by the position of their call; a result of an unknown call follows all calls."""
    places = {call.id: index for index, call in reversed(list(enumerate(step.tool_calls))) if call.id}
    found: dict[int, list[ToolResult]] = defaultdict(list)
    for position, result in enumerate(step.tool_results):
        unnamed = position if not result.call_id and position < len(step.tool_calls) else len(step.tool_calls)
        found[places.get(result.call_id, unnamed)].append(result)
    return found


def _arguments(arguments: JSON, limit: int) -> str:
    """Return the arguments in one line: the text of a single one, else pairs of name and value, each cut alike."""
    given = arguments if isinstance(arguments, dict) else {"": arguments}
    if len(given) == 1:
        (value,) = given.values()
        return fitted(value if isinstance(value, str) else canonical(value), limit)
    each = max(12, limit // max(1, len(given)))
    return "  ".join(f"{fitted(key, 40)}={_value(value, each)}" for key, value in given.items())


def _value(value: JSON, limit: int) -> str:
    text = json.dumps(value[: 2 * limit], ensure_ascii=False) if isinstance(value, str) else canonical(value)
    plain = isinstance(value, str) and value and " " not in value and text == f'"{value}"'
    return fitted(str(value) if plain else text, limit)
