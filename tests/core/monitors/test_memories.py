"""What the monitors of claims, checks, churn, sprawl and drift remember, and when drift and sprawl are quiet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from reasonblocks.monitors import WEIGHTS
from reasonblocks.monitors.builtin import BY_NAME
from reasonblocks.monitors.features import features_of
from reasonblocks.types import JSON, Memories, Step
from reasonblocks_workbench.calibration import shipped
from tests.core.monitors.asking import evaluate

Act = Callable[..., Step]
Fired = Callable[[Sequence[Step]], set[str]]
TASK = "Fix the date parser so that leap years are accepted, " * 40


def busy(act: Act, n: int) -> Step:
    """A step that gives every monitor something new to remember."""
    thought = (
        f"I assume that part {n} of the work is left, and I polish button {n} with another colour. The fee is {n}."
    )
    return act(f"edit_file_{n}", f"Error {n}: none", path=f"src/part_{n}.py", new=f"v{n}", thought=thought)


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "semantic_loop"])
def test_a_memory_stays_well_below_a_kilobyte(act: Act, name: str) -> None:
    memory: JSON = None
    sizes = []
    for n in range(400):
        memory = BY_NAME[name].observe(features_of(busy(act, n), 10_000 + n, TASK), memory).memory
        sizes.append(len(json.dumps(memory)))
    assert max(sizes) <= 800


def drift(task: str, thoughts: Sequence[str]) -> float:
    memory: JSON = None
    worst = 0.0
    for n, thought in enumerate(thoughts):
        found = BY_NAME["silent_topic_drift"].observe(features_of(Step(thought=thought), n, task), memory)
        memory, worst = found.memory, max(worst, found.score)
    return worst


CHINESE = "购物车合计金额在使用优惠券后会变成负数，请修复这个问题"
ON_SUBJECT = "购物车的合计金额没有下限，优惠券比总价大的时候结果就会变成负数。"


def test_work_on_a_chinese_task_is_no_drift() -> None:
    thoughts = [f"{ON_SUBJECT}现在看第 {n} 个文件，确认优惠券的金额在什么地方被减去。" for n in range(12)]
    assert drift(CHINESE, thoughts) == 0.0


def test_leaving_a_chinese_task_is_drift() -> None:
    away = [f"主页的第 {n} 张图片颜色太暗，换成暖色并且加上圆角，看起来会好看得多。" for n in range(10)]
    assert drift(CHINESE, [ON_SUBJECT, *away]) >= 0.6


def test_thoughts_in_another_script_than_the_task_are_not_judged() -> None:
    away = ["主页，图片，颜色，太暗，换成，暖色，并且，加上，圆角，看起来，会，好看，得多。"] * 12
    assert (
        drift("Fix the date parser so that leap years are accepted", ["The date parser and its leap years.", *away])
        == 0.0
    )


def test_bent_words_of_the_task_are_on_its_subject() -> None:
    thoughts = ["Теперь я смотрю на ошибки парсера, чтобы понять, почему он не принимает этих дат вовсе."] * 12
    assert drift("Исправь ошибку парсеров: високосные годы, принимаемые даты", thoughts) == 0.0


def test_calls_on_the_subject_are_no_drift(act: Act, fired: Fired) -> None:
    said = "The date parser rejects leap years, so that is where I look now."
    away = "Now I polish colour and shade of my button because it would look much nicer in a warmer blue."
    steps = [act("note", f"ok {n}", path=f"parser_{n}.py", thought=away if n else said) for n in range(14)]
    assert "silent_topic_drift" not in fired(steps)


def test_many_words_for_one_tool_late_are_no_sprawl(act: Act, fired: Fired) -> None:
    words = "login refund delivery invoice password address coupon colour warranty gift points store pickup tax".split()
    steps = [act("get_order", f"order {n}", order=f"#W{n}") for n in range(24)]
    steps += [act("search_kb", f"KB-{n}00", query=f"{word} KB-{n}00") for n, word in enumerate(words)]
    assert fired(steps) == set()


def test_a_few_new_tools_at_the_end_are_no_sprawl(act: Act, fired: Fired) -> None:
    steps = [act("get_order", f"order {n}", order=f"#W{n}") for n in range(24)]
    steps += [act(name, f"ok: {name}", to="ann") for name in ("send_mail", "close_ticket", "write_log")]
    assert fired(steps) == set()


def test_new_tools_late_are_sprawl_whatever_they_are_given(act: Act, fired: Fired) -> None:
    steps = [act("get_order", f"order {n}", order=f"#W{n}") for n in range(24)]
    steps += [act(f"tool_{word}", f"came {word}", what=word) for word in ("camera", "quotes", "menu", "fleet", "meter")]
    assert "late_sprawl" in fired(steps)


def numbers_in(value: JSON) -> Iterator[int | float]:
    if isinstance(value, Mapping):
        for one in value.values():
            yield from numbers_in(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from numbers_in(one)
    elif isinstance(value, (int, float)):
        yield value


def test_every_number_is_one_that_any_reader_of_json_takes_whole(act: Act) -> None:
    task = " ".join(f"subject{n}" for n in range(200))
    memories: Memories = {}
    for n in range(60):
        step = act(
            "lookup", f"entry {n} of {n * 7919}", about=f"subject{3 * n} subject{3 * n + 1}", thought=f"subject{n}"
        )
        memories = evaluate(step, n, memories, (), task, WEIGHTS["coding"], shipped())[1]
    found = list(numbers_in(dict(memories)))
    assert len(found) > 30
    assert [one for one in found if abs(one) > 2**53] == []
