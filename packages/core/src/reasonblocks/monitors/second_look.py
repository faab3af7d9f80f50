"""Follows what a run changes and checks, and says so when its end gets a second look (BEHAVIOUR section 9).

The text has facts only: the task, the changes since the newest check, that check and how it ended, and a program that
was run after them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ..account.calls import NOTE, RUN, Kind, code_in, kind_of, run_in
from ..account.message import message_line
from ..account.observe import calls_with_results, only_records
from ..account.results import TAIL, ending_line, read_result
from ..account.sameness import hash_of
from ..types import Account, Doubt, Step, ToolCall, ToolResult
from ..types.account import Work
from ..types.steering import SecondLook
from .claims import steps_ago
from .excerpts import call_line, literal, one_line, quoted
from .roles import trust_of

CHANGES = 5
"""The number of changes that a text names: the newest ones."""
TASK = 300
"""Characters of the task that a text repeats."""
_INSTALLS = re.compile(
    r"(?:\s*(?:(?:cd|source|\.|export)\s[^&;\n]{1,200}(?:&&|;)|sudo|-E|-H|python[\d.]* -m|uv))*"
    r"\s*(?:pip|pipx|conda|mamba|poetry|pdm|apt|apt-get|apk|dnf|yum|brew|npm|pnpm|yarn|gem)[\d.]*\s+"
    r"(?:-\S+\s+)*(?:install|i|add|update|upgrade|sync|ci)\b"
)
"""Commands that begin with an installation of packages: they change where the work runs, and not the work."""
_PIPED = re.compile(r"\|\s*(?:sudo\s+)?(?:ba|z)?sh\b")
"""A command that runs what it has fetched: an installation."""
_NOT_BEGUN = re.compile(
    r"No module named ['\"]?(?:pytest|nose\w*|tox|nox|unittest\w*)|(?:command )?not found$|can't open file"
    r"|file or directory not found|_FailedTest|has no attribute '\w*Test|\bno tests ran\b|\bcollected 0 items\b",
    re.MULTILINE,
)
"""The result of a check that has checked nothing."""
_COMPARES = re.compile(r"(?:^|[;&|\n][ \t]*)(?:test|\[\[?|diff|cmp|(?:md5|sha\d+)sum -c)\s")
"""A command that compares something of the work."""
_MERGES = re.compile(r"\bgit (?:cherry-pick|merge|rebase|pull|am|apply|stash)\b")
"""Commands that change files even if they end with a conflict."""
AGAIN = "If everything holds, give your answer again."


def follow(work: Work, step: Step, tool_roles: Mapping[str, str]) -> Work:
    """Return the facts after a completed step."""
    for call, result in calls_with_results(step):
        work = _after_call(work, call, result, tool_roles)
    return work


def _after_call(work: Work, call: ToolCall, result: ToolResult | None, tool_roles: Mapping[str, str]) -> Work:
    kind = kind_of(call, tool_roles)
    if NOTE in kind.roles:
        return work
    work = replace(work, shell=True) if kind.shell and not work.shell else work
    reading = None if result is None else read_result(result, kind=kind, given=call.arguments)
    refused = reading is not None and reading.failed and kind.is_single and not _MERGES.search(kind.command)
    if kind.changes and not (refused or only_records(kind) or _INSTALLS.match(kind.command)):
        changes = (*work.changes, call_line([call]))[-CHANGES:]
        work = replace(work, changes=changes, changed=work.changed + 1, ran="", broke="", red="", red_run=0)
    if reading is None:
        return work
    if reading.checked and not kind.looks:
        begun = not _NOT_BEGUN.search(reading.text[-TAIL:])
        ended = _ending(ending_line(reading), call, tool_roles)
        return _after_check(work, call, kind, ended, failed=reading.failed, begun=begun)
    if kind.shell and _runs(kind):
        says = _ending(message_line(reading.text), call, tool_roles) if reading.failed else ""
        broke = "its result " + (f"says {says}" if says else "looks like an error") if reading.failed else ""
        return replace(work, ran=call_line([call]), broke=broke)
    return work


def _runs(kind: Kind) -> bool:
    """Return True for a command that runs or compares something of the work, a script too that it has just written."""
    if _PIPED.search(kind.command):
        return False
    if not kind.changes:
        return RUN in kind.roles or _COMPARES.search(kind.command) is not None
    return RUN in kind.roles and "<<" in kind.command and not code_in(kind.command)


def _after_check(work: Work, call: ToolCall, kind: Kind, ended: str, *, failed: bool, begun: bool) -> Work:
    """Return the facts after a check. One that failed since the newest change is kept until the same one passes."""
    line = call_line([call])
    run = hash_of(run_in(kind.command) if kind.shell else line)
    red, red_run = work.red, work.red_run
    if failed:
        red = f"{line} was run; its result says {ended}" if ended and begun else ""
        red_run = run
    elif red_run == run:
        red, red_run = "", 0
    return Work(check=line, ended=ended, check_run=run, red=red, red_run=red_run)


def _ending(line: str, call: ToolCall, tool_roles: Mapping[str, str]) -> str:
    """Return a line of a result in quotes, "" for a result that may not be quoted."""
    return quoted(line) if line and trust_of(call, tool_roles) == "full" else ""


def is_due(doubt: Doubt, wanted: SecondLook | None) -> bool:
    """Return True if an end with this doubt gets a second look."""
    if wanted is None:
        return False
    return doubt.monitor == "claim_contradiction" or (doubt.monitor == "verification_skip" and wanted != "doubt")


def text_of_look(task: str, work: Work, doubt: Doubt | None, account: Account, step: int) -> str:
    """Return the facts about a run that would end with this step, and what to do about them."""
    lines = [_task(task), _changes(work), _check(work, doubt, account, step), _red(work), _run(work)]
    return "\n".join([line for line in [*lines, _advice(work, doubt, account), AGAIN] if line])


def _task(task: str) -> str:
    text = one_line(" ".join(task.split()))
    return f"The task: {literal(text if len(text) <= TASK else f'{text[:TASK].rstrip()}…')}" if text else ""


def _changes(work: Work) -> str:
    if not work.changed:
        return ""
    since = " since the newest check" * bool(work.check)
    before = work.changed - len(work.changes)
    more = f"; and {before} earlier one{'s' * (before > 1)}" * bool(before)
    return f"These calls may have changed something{since}: {'; '.join(work.changes)}{more}."


def _check(work: Work, doubt: Doubt | None, account: Account, step: int) -> str:
    if not work.check or account.check is None:
        none = "No call of this run was recognised as a test, build, type or lint check."
        return doubt.text if doubt is not None else none * _could_check(work, account)
    says = f"; its result says {work.ended}" if work.ended else ""
    if doubt is not None:
        return f"{doubt.text} That check was {work.check}{says}."
    ago = steps_ago(step - account.check.step, "before this answer")
    return f"The newest check, {ago}, was {work.check}{says}."


def _run(work: Work) -> str:
    """Return what is known of a program that was run after the newest check and change."""
    if not work.ran or not (work.broke or work.check or work.changed):
        return ""
    if work.changes and work.ran == work.changes[-1]:  # a script that was written and run by one call
        return f"The last one was run, and {work.broke}." if work.broke else ""
    says = f"; {work.broke}" if work.broke else ""
    return f"{'After that, ' if work.check or work.changed else ''}{work.ran} was run{says}."


def _red(work: Work) -> str:
    """Return a check that failed before the newest one, without a change since."""
    return (
        f"Before that, and no change was seen since, {work.red}." if work.red and work.red_run != work.check_run else ""
    )


def _advice(work: Work, doubt: Doubt | None, account: Account) -> str:
    if work.broke:
        return "If that is not as it should be, mend it, or say so in your answer."
    if work.check:
        it = "that check again" if work.ran else "it"
        return f"Run {it}, or say why it cannot be run." if doubt is not None or account.edits else ""
    asks = _could_check(work, account) or (doubt is not None and not work.ran)
    return "Run a check, or say why none can be run." if asks else ""


def _could_check(work: Work, account: Account) -> bool:
    """Return True for changed files that nothing was run on, in a run that has a shell."""
    return account.edits > 0 and work.shell and not (account.tested or work.ran)
