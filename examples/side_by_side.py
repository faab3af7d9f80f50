"""Prints what the two runs did: with frames and colour where rich is installed, in plain columns where it is not."""

from __future__ import annotations

import importlib.util
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from scripted_model import CHARS_PER_TOKEN
from two_runs import MAX_CALLS, TASK, Run, Seen

WIDTH = 100
"""Columns of output that does not go to a terminal."""
NARROWEST = 60
INTRODUCTION = f"""\
One agent, one task ("{TASK}"), one broken repository, twice: plain, and with ReasonBlocks' defaults.

The model is scripted: it clings to a wrong idea until the request that it gets holds what a monitor found. The script \
decides from the text of that request alone. All else is real: the agent (LangChain's create_agent), its tools, the \
tests that they run, and the steering. No network, no key."""
READING = """\
The second line of a step: the FSM state in which the model was called, how difficult the step was (0 to 1), and the \
monitors that fired on it; one that fired fades over the next steps. Nothing watched the plain run: its messages were \
replayed afterwards (`reasonblocks replay`)."""
CLOSING = f"""\
* Counted by the script, {CHARS_PER_TOKEN} characters a token. What a model that is no script makes of the same \
guidance, this does not measure."""
LABELS = ("ended", "model calls", "tool calls", "tokens in, out *", "tests at the end")
HEARD = ">> reads what a monitor found"
COLOURS = (
    (HEARD, "bold green"),
    (r"\bOK\b", "bold green"),
    (r"FAILED \(.*?\)", "red"),
    (r"fired: [\w, ]+", "yellow"),
    (r"\b(?:INIT|NORMAL)\b", "cyan"),
    (r"\bFAST\b", "blue"),
    (r"\b(?:SLOW|SKIP)\b", "magenta"),
)
"""Highlighted text, as pattern and style, if the output has colour."""

Row = Sequence[str]


def introduce() -> None:
    tell(INTRODUCTION, terminal_width())


def compare(plain: Run, steered: Run) -> None:
    width = terminal_width()
    cells = zip_longest(cells_of(plain), cells_of(steered), fillvalue="")
    table(["step", "plain", "steered"], [[str(step), *pair] for step, pair in enumerate(cells)], width)
    tell(READING, width)
    for call, text in steered.guidance.items():
        tell(f"Before step {call}, this stood at the end of the steered model's messages:", width)
        print(textwrap.indent(text, "  | ", lambda _: True), end="\n\n")
    table(["", "plain", "steered"], list(zip(LABELS, totals(plain), totals(steered))), width)
    tell(CLOSING, width)


def cells_of(run: Run) -> list[str]:
    return [cell(seen, heard=step in run.heard) for step, seen in enumerate(run.steps)]


def cell(seen: Seen, *, heard: bool) -> str:
    judged = seen.judged
    score = "   -" if judged.difficulty is None else f"{judged.difficulty:.2f}"
    fired = f"  fired: {', '.join(judged.fired)}" if judged.fired else ""
    acts = [f"{did}: {came}" for did, came in zip(seen.did, seen.came)]
    return "\n".join([*[HEARD] * heard, *acts, f"{judged.state:6} {score}{fired}"])


def totals(run: Run) -> Row:
    ended = f"stopped at its limit of {MAX_CALLS} calls" if run.at_limit else "by itself"
    tokens = f"{run.tokens_in:,}, {run.tokens_out:,}"
    return ended, str(len(run.steps)), str(run.tool_calls), tokens, run.verdict


# --- the terminal


def terminal_width() -> int:
    return max(NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns)


def tell(text: str, width: int) -> None:
    for paragraph in text.split("\n\n"):
        print(textwrap.fill(paragraph, width), end="\n\n")


def table(head: Row, rows: Sequence[Row], width: int) -> None:
    if importlib.util.find_spec("rich"):
        rich_table(head, rows, width)
    else:
        print("\n".join(plain_table(head, rows, width)), end="\n\n")


def plain_table(head: Row, rows: Sequence[Row], width: int) -> Iterator[str]:
    """The first column as wide as it has to be, the others share what is left."""
    first = max(len(row[0]) for row in [head, *rows])
    wide = (width - first) // (len(head) - 1) - 2
    for row in [head, *rows]:
        lines = [[part for line in text.split("\n") for part in textwrap.wrap(line, wide) or [""]] for text in row[1:]]
        for name, *parts in zip_longest([row[0]], *lines, fillvalue=""):
            yield "  ".join([name.ljust(first), *(part.ljust(wide) for part in parts)]).rstrip()


def rich_table(head: Row, rows: Sequence[Row], width: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, width=width, padding=(0, 1), show_lines=False)
    for name in head:
        drawn.add_column(name, ratio=None if name == head[0] else 1, style="dim" if name == head[0] else None)
    for row in rows:
        texts = [Text(text) for text in row]
        for text in texts:
            for pattern, style in COLOURS:
                text.highlight_regex(pattern, style)
        drawn.add_row(*texts)
    Console(width=width).print(drawn)
