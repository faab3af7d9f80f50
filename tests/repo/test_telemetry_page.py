"""The examples of docs/telemetry.md run, and its table names exactly what the sink emits."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from reasonblocks.backends.otel_sink import _attributes, _names
from reasonblocks.backends.otel_sink._sink import RUNS
from reasonblocks.util.extras import EXTRAS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/telemetry.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def printed(example: str) -> str:
    """Return what an example prints, in a process of its own because it sets the global providers."""
    return subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_the_example_prints_the_spans_and_the_evaluations_of_its_run() -> None:
    out = printed(EXAMPLES[0])
    names = re.findall(r'^    "name": "(.*)"', out, re.MULTILINE)
    assert names == ["reasonblocks.step", "reasonblocks.step", "invoke_agent fixer"]
    assert '"event_name": "gen_ai.evaluation.result"' in out
    assert "All tests pass" not in out


def test_the_example_of_a_parent_prints_it() -> None:
    assert printed(EXAMPLES[1]) == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n"


def named() -> set[str]:
    """The attributes in the page's table: a name that begins with a dot continues the one before it."""
    found: set[str] = set()
    for cell in re.findall(r"(?<=\|)[^|\n]+(?=\|)", PAGE.partition("### Spans")[2].partition("### Texts")[0]):
        start = ""
        for name in re.findall(r"`([a-z_.0-9]+)`", cell):
            if name.startswith("."):
                found |= {upper + name for upper in upwards(start)}
            elif "." in name or name == "metadata":
                start = name
                found.add(name)
    return found


def upwards(name: str) -> list[str]:
    """A name and those that it is nested in."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


UNLISTED = {_names.PREFIX, _names.STEP, _names.OUTCOME, _names.INPUT_MESSAGES, _names.CONTENT_VARIABLE}
"""Names that are not attributes, or that other paragraphs explain."""


def test_the_table_has_every_attribute() -> None:
    known = {value for name, value in vars(_names).items() if name.isupper() and isinstance(value, str)}
    known |= {*_names.RUN_FIELDS, *_names.STEP_FIELDS, *_names.STEP_METADATA, *_names.CALL_FIELDS}
    known = {f"evaluations.0.{name}" if name.startswith("evaluation.") else name for name in known if "." in name}
    known -= {name for name in known if "tool_call." in name or name.startswith("llm.output_messages")}
    known -= {*UNLISTED, _names.RUN_UNFINISHED, _names.RUN_CONTINUED}
    assert len(known) > 60
    assert known - named() == set()


def test_the_page_explains_the_marks_of_runs_that_do_not_end() -> None:
    rest = PAGE.partition("### Runs that do not end")[2]
    marks = (_names.RUN_UNFINISHED, _names.RUN_CONTINUED, _names.OUTCOME)
    assert [name for name in marks if f"`{name}`" not in rest] == []


def test_the_numbers_are_those_of_the_sink() -> None:
    assert f"when {RUNS:,} newer runs are open" in PAGE
    assert f"at most {_attributes.MOST_EVALUATIONS}, the fired ones first" in PAGE
    assert f"pip install '{EXTRAS['otel'][0]}'" in PAGE


def test_the_values_that_permit_texts_are_named() -> None:
    assert f"{_names.CONTENT_VARIABLE}=true" in PAGE
    assert {value for value in _names.CONTENT_ON if f"`{value.upper()}`" in PAGE} == {"span_only", "span_and_event"}
