"""The account of a run: what each of its newest steps did, in hashes; bounded for runs of any length."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

FAILED, REFUSED = 1, 2
"""Flags of an action. A refused change has changed nothing."""


class Action(NamedTuple):
    """One call and its result, as hashes, 0 for none.

    `result` is the result's digest with times, ids and the like masked, `exact` that of the text as it came, and `line`
    that of the message line of a failed call.
    """

    step: int
    tool: int
    call: int
    result: int
    exact: int
    line: int
    flags: int


class Check(NamedTuple):
    """The newest test, build, type or lint run.

    `call` is the hash of what was run. `row` counts the checks in a row that ran this and had this message line, each
    after a change. `since` counts the changes since.
    """

    step: int
    call: int
    line: int
    failed: bool
    row: int = 1
    since: int = 0


class Series(NamedTuple):
    """Calls that differ in one short value, new each time, and fail in the same way.

    `shapes` has hashes of the values that stay the same, `tried` the number of calls.
    """

    shapes: tuple[int, ...] = ()
    line: int = 0
    tried: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The facts of a second look, as short texts: the newest check, the changes since, and a program run after both.

    `changes` has the newest calls as the agent wrote them, `changed` the number of all, `check` the call that checked,
    and `ended` the line of its result that says how it ended, "" if there is none or it may not be quoted. `ran` is the
    newest call that ran a program after both, and `broke` what its result says if it failed. `red` is a check that
    failed since the newest change, as long as the same one has not passed; `check_run` and `red_run` are hashes of what
    was run. `shell` is True once a command was run, as long as there is no check.
    """

    changes: tuple[str, ...] = ()
    changed: int = 0
    check: str = ""
    ended: str = ""
    check_run: int = 0
    red: str = ""
    red_run: int = 0
    ran: str = ""
    broke: str = ""
    shell: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Did:
    """The newest step's part of the account.

    `letter` is that of a dead step (A, B, C or D; "" for a step that is not dead): the run would be where it is without
    it. `due` names a trouble that is told whatever the patience: "check" or "series".
    """

    letter: str = ""
    looked: bool = False
    due: str = ""
    failed: bool = False
    waiting: bool = False
    nothing: bool = False
    changed: bool = False
    checked: bool = False
    finished: bool = False
    refused: bool = False

    @property
    def dead(self) -> bool:
        return bool(self.letter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The account after `steps` steps.

    `mark` is the step of the newest change, or that a new message of the user came before: what came earlier is another
    situation. `letters` has one character for each of the newest steps, the newest last: that of a dead step, or ".";
    in lower case if the step only looked at something. `edits` counts the changes of files since the newest check.
    `tested` is True once a result had a runner's totals in it.
    """

    steps: int = 0
    mark: int = 0
    user: int = 0
    letters: str = ""
    actions: tuple[Action, ...] = ()
    changes: tuple[int, ...] = ()
    edits: int = 0
    tested: bool = False
    vain: tuple[tuple[int, int], ...] = ()
    items: str = ""
    ids: tuple[tuple[int, ...], ...] = ()
    check: Check | None = None
    series: Series = field(default_factory=Series)
    turn: int = 0
    did: Did = field(default_factory=Did)


class Count(NamedTuple):
    """The times that a rung was `reached`, those at which a text would have been `needless`, and the `open` ones.

    Bit n of `open` is set if the rung was reached n steps ago, and what followed is not known yet.
    """

    reached: int = 0
    needless: int = 0
    open: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The patience of a run, fixed at its start, and its counts for its agent's profile.

    `rung` is the name of the rung in use, "" to be silent, and `name` that in the step log. `checks` is True if an
    earlier run of the agent has checked something. `window` has the newest nine steps as bits, 1 for dead, the newest
    the lowest, and `counts` one count for each rung. `offset` moves the rung by one at most: `alone` counts the dead
    stretches that ended by themselves, and `since` is the step at which the present one began, -1 for none.
    """

    rung: str = "4 of 5"
    name: str = "shipped"
    checks: bool = False
    window: int = 0
    counts: tuple[Count, ...] = ()
    offset: int = 0
    alone: int = 0
    since: int = -1
