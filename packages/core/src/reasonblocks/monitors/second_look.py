"""Follows what a run changes and checks, and says so when its end gets a second look (BEHAVIOUR section 9).

The text has facts only: the task, the changes since the newest check, that check and how it ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..account.calls import NOTE, kind_of
from ..account.observe import calls_with_results, edits_files
from ..account.results import ending_line, read_result
from ..types import Account, Doubt, Step, ToolCall, ToolResult
from ..types.account import Did, Work
from ..types.steering import SecondLook
from .claims import steps_ago
from .excerpts import call_line, literal, one_line, quoted
from .roles import trust_of

CHANGES = 5
"""The number of changes that a text names: the newest ones."""
TASK = 300
"""Characters of the task that a text repeats."""
AGAIN = "If everything holds, give your answer again."


def follow(work: Work, step: Step, did: Did, tool_roles: Mapping[str, str]) -> Work:
    """Return the facts after a completed step, whose account is `did`."""
    if not (did.changed or did.checked):
        return work
    for call, result in calls_with_results(step):
        if result is not None:
            work = _after_call(work, call, result, tool_roles)
    return work


def _after_call(work: Work, call: ToolCall, result: ToolResult, tool_roles: Mapping[str, str]) -> Work:
    kind = kind_of(call, tool_roles)
    if NOTE in kind.roles:
        return work
    reading = read_result(result, kind=kind)
    made = kind.changes and not (reading.failed and kind.is_single)
    if made and (not kind.shell or edits_files(call.name, call.arguments, kind)):
        work = replace(work, changes=(*work.changes, call_line([call]))[-CHANGES:], changed=work.changed + 1)
    if reading.checked and not kind.looks:
        line = ending_line(reading) if trust_of(call, tool_roles) == "full" else ""
        work = Work(check=call_line([call]), ended=quoted(line) if line else "")
    return work


def is_due(doubt: Doubt, wanted: SecondLook | None) -> bool:
    """Return True if an end with this doubt gets a second look."""
    if wanted is None:
        return False
    return doubt.monitor == "claim_contradiction" or (doubt.monitor == "verification_skip" and wanted != "doubt")


def text_of_look(task: str, work: Work, doubt: Doubt | None, account: Account, step: int) -> str:
    """Return the facts about a run that would end with this step, and what to do about them."""
    lines = [_task(task), _changes(work), _check(work, doubt, account, step)]
    if doubt is not None or account.edits:
        lines.append(
            "Run it, or say why it cannot be run." if work.check else "Run a check, or say why none can be run."
        )
    return "\n".join([line for line in [*lines, AGAIN] if line])


def _task(task: str) -> str:
    text = one_line(" ".join(task.split()))
    return f"The task: {literal(text if len(text) <= TASK else f'{text[:TASK].rstrip()}…')}" if text else ""


def _changes(work: Work) -> str:
    if not work.changed:
        return ""
    since = " since the newest check" * bool(work.check)
    before = work.changed - len(work.changes)
    more = f"; and {before} earlier one{'s' * (before > 1)}" * bool(before)
    return f"Calls that may have changed something{since}: {'; '.join(work.changes)}{more}."


def _check(work: Work, doubt: Doubt | None, account: Account, step: int) -> str:
    if not work.check or account.check is None:
        none = "No test, build, type or lint check was seen in this run."
        return doubt.text if doubt is not None else none * (account.edits > 0 and not account.tested)
    says = f"; its result says {work.ended}" if work.ended else ""
    if doubt is not None:
        return f"{doubt.text} That check was {work.check}{says}."
    ago = steps_ago(step - account.check.step, "before this answer")
    return f"The newest check, {ago}, was {work.check}{says}."
