"""Every statement of a text holds against the steps, as a reader of the run would check it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.engine.gates import first_sentence
from reasonblocks.monitors import WEIGHTS, recall, untried
from reasonblocks.monitors.builtin import BY_NAME
from reasonblocks.monitors.excerpts import call_line
from reasonblocks.monitors.finding import Finding
from reasonblocks.monitors.recall import Recall
from reasonblocks.monitors.suite import hint_text
from reasonblocks.monitors.wording import (
    Phrase,
    changed_again,
    circle,
    failures,
    had_before,
    in_vain,
    nothing_found,
    repeated,
    same_result,
)
from reasonblocks.types import Memories, Step, ToolCall, ToolResult
from reasonblocks_workbench.calibration import shipped
from tests.core.monitors.asking import evaluate
from tests.core.monitors.conftest import act

ARGUMENTS = ("attic", "cellar", "src/a.py", "a.py", "ls", "x, y", 'say "hi"', "two\nlines", "  two\nlines")
RESULTS = (
    "Doors: attic, cellar, pantry.",
    "a.py\nb.py\nc.py",
    '["attic", "cellar", "pantry"]',
    "Error: no such file",
    "Error: no such file 7",
    "0 results",
    "",
    "12 passed in 0.12s",
    "12 passed in 0.13s",
    "1 failed in 0.13s",
    'He said "no".',
    "x" * 300,
)
TOOLS = ("read_file", "go", "search", "bash", "edit_file", "browse_web")
OWN = frozenset({"read_file", "search", "bash", "edit_file"})
"""Tools whose results may be quoted: the role of `go` is unknown, and `browse_web` returns other people's text."""

ONE = st.builds(
    act, st.sampled_from(TOOLS), st.sampled_from(RESULTS), is_error=st.just(None), path=st.sampled_from(ARGUMENTS)
)
TWO = st.builds(
    lambda one, other: Step(
        tool_calls=(*one.tool_calls, ToolCall(id="d", name="go", arguments=other.tool_calls[0].arguments)),
        tool_results=(*one.tool_results, ToolResult(call_id="d", output="Doors: hall, attic.", name="go")),
    ),
    ONE,
    ONE,
)
STEPS = st.one_of(ONE, ONE, ONE, ONE, ONE, TWO, st.just(Step(thought="I think about it.")))
LOOPS = st.builds(lambda steps, times: [*steps] * times, st.lists(STEPS, min_size=1, max_size=4), st.integers(1, 5))
RUNS = st.builds(lambda parts: [step for part in parts for step in part][:25], st.lists(LOOPS, min_size=1, max_size=4))


def remembered(steps: Sequence[Step]) -> tuple[Recall, Memories]:
    memories: Memories = {}
    for index, step in enumerate(steps):
        _, memories = evaluate(step, index, memories, (), "", WEIGHTS["coding"], shipped())
    return Recall(memories, len(steps) - 1), memories


class Reader:
    """Has the run before its eyes, and believes nothing."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.calls = [step for step in steps if step.tool_calls]

    def placed(self, place: str) -> list[Step]:
        """The steps of "your last call, 3 and 5 calls ago", oldest first."""
        place = place.removeprefix("most recently ")
        among = self.calls if "call" in place else self.steps
        if found := re.fullmatch(r"your last (\d+) (?:call|turn)s", place):
            return [*among[-int(found[1]) :]]
        numbers = [int(number) for number in re.findall(r"\d+", place)]
        if place.startswith("your last"):
            numbers.insert(0, 1)
        assert numbers, place
        assert max(numbers) <= len(among), place
        return [among[-number] for number in sorted(numbers, reverse=True)]

    def named(self, shown: str) -> list[Step]:
        """The steps with this call."""
        return [step for step in self.calls if written(step) == shown]


def written(step: Step) -> str:
    """The calls of a step in one line."""
    calls = []
    for call in step.tool_calls:
        assert isinstance(call.arguments, Mapping)
        value = str(call.arguments["path"]).strip().replace("\n", "\\n")
        mark = "`" if '"' in value else '"'
        calls.append(f"{call.name}(path={mark}{value}{mark})")
    return " + ".join(calls)


def outputs(step: Step) -> list[str]:
    return [result.output for result in step.tool_results]


def failed(step: Step) -> bool:
    return any("Error" in output or "1 failed" in output for output in outputs(step))


def masked(step: Step) -> list[str]:
    return [re.sub(r"\d", "#", output) for output in outputs(step)]


QUOTE = re.compile(r"""(?:: |with: |last: )(?P<mark>["`])(?P<line>.*)(?P=mark)$""")


def check_quote(line: str, step: Step) -> None:
    """A quoted line is in the result, and everybody's call in that step is the user's own."""
    assert {call.name for call in step.tool_calls} <= OWN
    assert len(line) <= 120
    lines = [part for output in outputs(step) for part in output.split("\n")]
    assert any(part.startswith(line.removesuffix("…")) for part in lines), line


def check_same(steps: Sequence[Step], said: str) -> None:
    """The phrase ", each time with the same result: ..."."""
    if "the same" not in said and "nothing" not in said:
        return
    if "aside" in said:
        assert len({str(masked(step)) for step in steps}) == 1
    else:
        assert len({str(outputs(step)) for step in steps}) == 1
    if "error" in said.partition(":")[0]:
        assert all(map(failed, steps))
    if "nothing came back" in said:
        assert not any(output for step in steps for output in outputs(step))
    if quote := QUOTE.search(said):
        check_quote(quote["line"], steps[-1])


def check_called(reader: Reader, found: re.Match[str]) -> None:
    """The sentence is about one call. Two that differ only in white space are written alike."""
    shown, count, among, place, said = found.groups()
    alike = [step for step in reader.calls[-int(among or 0) :] if written(step) == shown]
    equal = [[step for step in alike if exactly(step) == call] for call in dict.fromkeys(map(exactly, alike))]
    fitting = [made for made in equal if len(made) == int(count) > 1]
    if place is not None:
        placed = reader.placed(place)
        assert place.startswith("most recently") or len(placed) == int(count)
        fitting = [made for made in fitting if made[-len(placed) :] == placed]
    assert fitting
    if said and len(fitting) == 1:
        last = re.search(r"the last (\d+) times", said)
        check_same(fitting[0][-int(last[1]) if last else 0 :], said)


def exactly(step: Step) -> str:
    return str([(call.name, call.arguments) for call in step.tool_calls])


def check_nearly(reader: Reader, found: re.Match[str]) -> None:
    assert len([step for step in reader.calls if step.tool_calls[0].name == found[1].partition("(")[0]]) > 1
    assert reader.named(found[1])


def who(reader: Reader, found: re.Match[str]) -> list[Step]:
    """The steps of "Your last 3 calls", or of "3 calls (your last call, 3 and 5 calls ago)"."""
    groups = found.groupdict()
    if groups["last"]:
        return reader.placed(f"your last {groups['last']} {groups['unit']}s")
    steps = reader.placed(groups["place"])
    assert groups["place"].startswith("most recently") or len(steps) == int(groups["count"])
    return steps


def check_circle(reader: Reader, found: re.Match[str]) -> None:
    steps, period = who(reader, found), int(found["period"])
    if len(steps) == 2 * period:
        assert [(exactly(step), masked(step)) for step in steps[:period]] == [
            (exactly(step), masked(step)) for step in steps[period:]
        ]


def check_failures(reader: Reader, found: re.Match[str]) -> None:
    steps = who(reader, found)
    assert all(map(failed, steps))
    said = found["said"] or ""
    if "same error" in said and "aside" not in said:
        assert len({str(outputs(step)) for step in steps}) == 1
    if quote := QUOTE.search(said):
        check_quote(quote["line"], steps[-1])


def check_vain(reader: Reader, found: re.Match[str]) -> None:
    for step in who(reader, found):
        earlier = [masked(other) for other in reader.calls[: reader.calls.index(step)]]
        assert failed(step) or masked(step) in earlier or reader.calls.count(step) > 1


def check_before(reader: Reader, found: re.Match[str]) -> None:
    for step in who(reader, found):
        same = [other for other in reader.calls if written(other) == written(step) and masked(other) == masked(step)]
        assert len(same) > 1


def check_different(reader: Reader, found: re.Match[str]) -> None:
    steps = who(reader, found)
    assert len({exactly(step) for step in steps}) == len(steps)
    check_same(steps, found["said"])


def check_empty(reader: Reader, found: re.Match[str]) -> None:
    assert {output for step in who(reader, found) for output in outputs(step)} <= {"", "0 results"}


def check_changed(reader: Reader, found: re.Match[str]) -> None:
    steps = reader.named(found[3])
    assert len(steps) >= int(found[1]) > 1
    assert all("edit_file" in written(step) for step in steps)


WHO = (
    r"(?:Your last (?P<last>\d+) (?P<unit>call)s|(?P<count>\d+) (?:different calls|calls|searches) "
    r"\((?P<place>[^()]*)\))(?: were all different and)?"
)
TIMES = r"(\d+) times(?: in your last (\d+) calls)?"
BACK = r"(, (?:and )?(?:each time|the last \d+ times|it failed) .*)?"
STATEMENTS: Mapping[str, Callable[[Reader, re.Match[str]], None]] = {
    rf"You have called (.+?) {TIMES}(?: \(([^()]*)\))?{BACK}\.": check_called,
    r"You have made nearly the same (?:call|change) \d+ times.*?, the last being (.+?\))(?:, .*)?\.": check_nearly,
    rf"You have made the same change {TIMES}(?: \([^()]*\))?: (.+)\.": check_changed,
    rf"{WHO} went (?:twice around the same|around one) circle of (?P<period>\d+) calls.*": check_circle,
    rf"{WHO} (?:failed|ended in)(?P<said>.*)\.": check_failures,
    rf"{WHO} failed, or brought a result that was there before.*": check_vain,
    rf"{WHO} were made before, with the same results.*": check_before,
    rf"{WHO} got (?P<said>the same result.*)\.": check_different,
    rf"{WHO} found nothing.*": check_empty,
}


def check(evidence: str, steps: Sequence[Step]) -> None:
    """A text says what it says in one of these ways, and it is true."""
    if not evidence:
        return
    fitting = [(found, how) for form, how in STATEMENTS.items() if (found := re.fullmatch(form, evidence))]
    assert fitting, evidence
    for found, how in fitting[-1:] if "or brought" in evidence else fitting[:1]:
        how(Reader(steps), found)


PHRASES = (repeated, circle, failures, same_result, nothing_found, had_before, in_vain, changed_again)


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase.__name__)
@settings(deadline=None, max_examples=60)
@given(run=RUNS, rung=st.integers(1, 3), data=st.data())
def test_what_is_said_of_the_steps_is_true(phrase: Phrase, run: list[Step], rung: int, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(run) - 1), min_size=1, max_size=5, unique=True))
    check(phrase(remembered(run)[0], tuple(sorted(chosen)), rung), run)


def test_a_call_is_not_counted_with_one_that_differs_in_white_space() -> None:
    run = [act("bash", "Error: no such file", path=path) for path in ("two\nlines", "two\nlines", "  two\nlines")]
    said = repeated(remembered(run)[0], (0, 1), 1)
    assert said.startswith('You have called bash(path="two\\nlines") 2 times (2 and 3 calls ago), each time with')
    check(said, run)


LOOP_KINDS = ("repeat", "unmoved", "retry", "cycle", "error", "failing", "redone", "reworded", "waiting")


@settings(deadline=None, max_examples=80)
@given(run=RUNS, kind=st.sampled_from(LOOP_KINDS), rung=st.integers(1, 3))
def test_a_text_about_a_loop_is_true_up_to_its_last_word(run: list[Step], kind: str, rung: int) -> None:
    found = Finding(score=0.9, steps=tuple(range(max(0, len(run) - 5), len(run))), facts={"kind": kind})
    past = remembered(run)[0]
    for text in (BY_NAME["semantic_loop"].say(found, rung, past), hint_text(found, rung, past)):
        check(first_sentence(text), run)
        check_alternatives(text, run)


CALLS = re.compile(
    r"Not tried yet(?P<after> after this result)?: (?:(?P<made>\w+\(.*\)) and then )?(?P<calls>\w+\(.*\))\.$"
)


def check_calls(made: str | None, untried: str, run: Sequence[Step]) -> None:
    """The calls were not made, each names what a result has, and the call before them was made."""
    calls = [call_line([call]) for step in run for call in step.tool_calls]
    assert made is None or made in calls
    outputs = [result.output for step in run for result in step.tool_results if result.name != "browse_web"]
    given = re.findall(r"""\w+\(\w+=(?:"([^"]*)"|'([^']*)')\)""", untried)
    assert 0 < len(given) <= 3
    paths = [call.arguments.get("path") for step in run for call in step.tool_calls if isinstance(call.arguments, dict)]
    for double, single in given:
        value = double or single
        assert value not in paths
        assert any(re.split(r"[/ ]", value)[-1] in output for output in outputs)


def check_after(untried: str, run: Sequence[Step]) -> None:
    """No call after the same results as the last ones was one of these."""
    results = [[result.output for result in step.tool_results] for step in run]
    following = [step.tool_calls for before, step in zip(results, run[1:]) if before == results[-1]]
    made = [call_line([call]) for calls in following for call in calls]
    assert not any(call in untried for call in made)


def check_alternatives(text: str, run: Sequence[Step]) -> None:
    as_calls = CALLS.search(text)
    if as_calls is not None and as_calls["after"]:
        check_after(as_calls["calls"], run)
    elif as_calls is not None:
        check_calls(as_calls["made"], as_calls["calls"], run)


LONG = st.builds(
    act, st.text(max_size=30), st.text(max_size=400), path=st.text(max_size=300), other_key_of_the_call=st.text()
)


@settings(deadline=None, max_examples=60)
@given(run=st.lists(LONG, max_size=30))
def test_no_memory_of_it_is_over_3_kb(run: list[Step]) -> None:
    memories = remembered(run)[1]
    sizes = [
        len(json.dumps(memories.get(name), ensure_ascii=False).encode("utf-8", "replace"))
        for name in (recall.OWN_MEMORY, untried.OWN_MEMORY)
    ]
    assert max(sizes) <= 3_072


def walls() -> Iterator[Step]:
    for n in range(40):
        names = [f"{'n' * 30}_{n}_{at}" for at in range(16)]
        yield act("list_dir", "\n".join(names), path="x" * 4_000 + str(n))
        yield act("read_file", '"\\' * 500, path='"\\' * 500 + str(n))
        yield act("read_file", "数" * 5_000, path="数" * 5_000)


def test_the_longest_texts_stay_below_3_kb() -> None:
    memories = remembered([*walls()])[1]
    sizes = [len(json.dumps(memories[name], ensure_ascii=False).encode()) for name in ("_recall", "_untried")]
    assert max(sizes) <= 3_072
