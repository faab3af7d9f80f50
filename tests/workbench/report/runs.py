"""Runs made by hand, for the tests of reports: an ordinary one, and one whose every text attacks the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reasonblocks.events import RunFinish, RunStart, StepEvent
from reasonblocks.types import Doubt, RunInfo, ToolCall, ToolResult
from reasonblocks_workbench.report import RunPage, page_of_log
from reasonblocks_workbench.traces import RunLog

MONITOR = "MonitorSteeringInjection"


def step(index: int, *, state: str = "NORMAL", run_id: str = "run-1", **fields: Any) -> StepEvent:
    """Return the event of a call; keywords that are no field of an event are metadata."""
    known = {name: fields.pop(name) for name in list(fields) if name in StepEvent.__dataclass_fields__}
    metadata: dict[str, Any] = {"fsm_state": state, "gate_decision": "quiet", **fields}
    return StepEvent(run_id=run_id, step_index=index, timestamp=1_000.0 + index, metadata=metadata, **known)


def told(
    index: int, text: str = "Read the error.", *, fired: tuple[str, ...] = ("semantic_loop",), **more: Any
) -> StepEvent:
    """Return the event of a call that a monitor's text precedes."""
    return step(
        index,
        monitors_fired=fired,
        failure_type="loop",
        scores={"semantic_loop": 0.7},
        injection_sources=(MONITOR,),
        intervention_texts=(text,),
        **{"gate_decision": "inject", **more},
    )


def log(*steps: StepEvent, outcome: str | None = "success", doubts: tuple[Doubt, ...] = (), **info: Any) -> RunLog:
    run = RunInfo(**{"run_id": "run-1", "agent_name": "bugfixer", "task": "Fix the failing tests.", **info})
    finish = None if outcome is None else RunFinish(
        run_id=run.run_id, outcome=outcome, timestamp=1_060.0, doubts=doubts
    )  # fmt: skip
    start = RunStart(run=run, timestamp=1_000.0)
    return RunLog(run_id=run.run_id, start=start, steps=steps, finish=finish, file="runs.jsonl", line=1)


def page(*steps: StepEvent, **info: Any) -> RunPage:
    return page_of_log(log(*steps, **info))


def ordinary(**info: Any) -> RunPage:
    """A run that is told something before call 4, and recovers."""
    return page_of_log(ordinary_log(**info))


def ordinary_log(**info: Any) -> RunLog:
    return log(
        step(0, state="INIT", injection_sources=("E3Injection",), intervention_texts=("Check your work.",)),
        step(1, difficulty=0.2, action="read_file", action_input='{"path":"a.py"}', observation="import b"),
        step(2, difficulty=0.5, action="run_tests", observation="1 failed", is_error=True),
        step(3, difficulty=0.7, action="run_tests", observation="1 failed", is_error=True, tokens=900),
        told(4, difficulty=0.8, action="run_tests", observation="1 failed", is_error=True, state="SLOW"),
        step(5, difficulty=0.5, action="edit_file", observation="ok"),
        step(6, difficulty=0.3, action="run_tests", observation="ok"),
        step(7, difficulty=0.1, thought="Done.", gate_decision="final", final=True),
        **info,
    )


ATTACKS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "--><svg onload=alert(1)>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}${alert(1)}",
    "]]></title></pre></bdi></td></table>",
    "&lt;script&gt;&#60;b&#62;",
    "![x](https://example.invalid/x.png) [y](javascript:alert(1)) https://example.invalid/",
    "\u202egnp.exe\u202c \u2066x\u2069 \u200bzero\ufeff \x1b[31mred \x00 \x07 \ud800 \U000e0041",
    "../../a/b?c#d%00",
)
"""Texts that a page must only show."""


def hostile(attack: str = "".join(ATTACKS), *, long: int = 0) -> RunPage:
    """A run whose ids, names, texts, states and reasons are an attack; `long` characters follow its longest texts."""
    return page_of_log(hostile_log(attack, long=long))


def hostile_log(attack: str = "".join(ATTACKS), *, long: int = 0, number: float = float("nan")) -> RunLog:
    """The events of that run; `number` is in place of the numbers that a server takes only if they are valid."""
    text = attack + "x" * long
    call = ToolCall(id=attack, name=attack, arguments={attack: text, "n": [attack, {attack: None}]})
    result = ToolResult(call_id=attack, name=attack, output=text, is_error=True, duration_ms=number)
    broken: Mapping[str, Any] = {"difficulty": float("nan"), "latency_ms": float("inf"), "overhead_ms": "x"}
    return log(
        step(0, state=attack, run_id=attack, injection_sources=("E3Injection",), intervention_texts=(text,)),
        step(1, state=attack, run_id=attack, thought=text, tool_calls=(call, call), tool_results=(result,),
             step_model=attack, scores={attack: 0.9}, monitors_fired=(attack,), failure_type=attack,
             injection_sources=(attack, MONITOR), intervention_texts=(text, text), pattern_ids=[attack],
             retrieved={attack: [attack], "e2": None}, gate_decision=attack, skipped_reason=attack, route=attack,
             error=attack, injections_dropped=[attack], **broken),
        step(2, state="SKIP", run_id=attack, reasoning=text, thought=text, action=attack, action_input=attack,
             observation=text, difficulty=float("-inf"), withheld_sources=[MONITOR], withheld_texts=[text],
             interrupt=attack, withheld_interrupt=attack, withheld_stop=attack, composite=number,
             scores={attack: number}),
        step(3, state="SKIP", run_id=attack, final=True, gate_decision="final", stop=attack, difficulty=2.5,
             difficulty_parts={attack: 1.0}, judged_by=attack),
        outcome=attack, doubts=(Doubt(monitor=attack, text=text),), run_id=attack, agent_name=attack, task=text,
        model=attack, framework=attack, parent_run_id=attack,
    )  # fmt: skip
