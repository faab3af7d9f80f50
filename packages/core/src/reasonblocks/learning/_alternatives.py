"""What successful runs did instead: at the same point of the same task, or after the same kind of trouble."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .._json import evolve
from ._acts import FEW_WORDS, Act, Given
from ._digest import RunDigest
from ._trouble import Kind, Trouble

MAX_CHANGES = 2
"""Arguments that are named as given differently."""


def given_as(change: str) -> str:
    return change.partition(" instead of ")[0]


def given_names(given: Sequence[Given]) -> tuple[str, ...]:
    return tuple(f"`{one.name}`" for one in given[:MAX_CHANGES])


def changes_of(bad: Sequence[Given], good: Sequence[Given], common: frozenset[str]) -> tuple[str, ...]:
    """How the arguments of the call that went well differ, as far as a lesson can say it, what tells most first."""
    before, after = {one.name: one for one in bad}, {one.name: one for one in good}
    said = [(1, f"without `{name}`") for name in sorted(before) if name not in after]
    said += [(2, f"with `{name}` as well") for name in sorted(after) if name not in before]
    for name in sorted(before.keys() & after.keys()):
        was, now = _shown(before[name], common), _shown(after[name], common)
        if _counted(was) != _counted(now):
            said.append((0, f"with `{name}` as {_uncounted(now)} instead of {_uncounted(was)}"))
        elif _words(now) < _words(was):
            said.append((3, f"with `{name}` as {now} instead of {was}"))
    return tuple(text for _, text in sorted(said)[:MAX_CHANGES])


_COUNT = re.compile(r"(\d+) words")


def _counted(form: str) -> str:
    """A form without its number: that there are 3 or 5 tells less than that it is a list, or a text."""
    form = _COUNT.sub("a text", form.replace("one word", "1 words").replace("a longer text", "a text"))
    return _uncounted(form)


def _words(form: str) -> int:
    """How many words a text has, 0 of another form: fewer of them find more."""
    found = _COUNT.fullmatch(form.replace("one word", "1 words").replace("a longer text", f"{FEW_WORDS + 1} words"))
    return int(found[1]) if found else 0


def _uncounted(form: str) -> str:
    return "a list" if form.startswith("a list of ") else form


def _shown(one: Given, common: frozenset[str]) -> str:
    return f"`{one.word}`" if one.word and one.word in common else one.form


AHEAD = 12
"""Steps after the point within which a successful run's other way is looked for."""
SOON = 3
"""Steps after a trouble within which what helped follows it."""
MAX_BEFORE = 2
"""Tools that are named as called first."""
CALLS = ("error", "claimed", "repeat", "empty")
"""Forms that are about a call of a tool, so that not to call it is another way."""
FEWEST = 2
"""Runs of other tasks, or tasks, that a way is learned from."""
MAX_SHOWN = 5
"""Run ids that a proposal names."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Move:
    """Another way: the tools called `before`, then `tool`, its arguments changed as `changes` say. Without a `tool` the
    run answered, and called nothing."""

    tool: str
    before: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    again: bool = False
    """The tool is the one that was in trouble."""

    @property
    def way(self) -> tuple[object, ...]:
        """What two moves share that teach the same: how the arguments were before does not count."""
        return self.tool, self.again, self.before, tuple(map(given_as, self.changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Instead:
    """What helped: `agreeing` of `seen` successful runs made this move. `same_task`: at this very point. `by_task`: of
    several tasks, so that `agreeing` and `seen` count tasks."""

    move: Move
    agreeing: int
    seen: int
    same_task: bool
    run_ids: tuple[str, ...]
    by_task: bool = False

    @property
    def convinces(self) -> bool:
        """More than half took it; of runs of other tasks, whose one may be chance, at least two. And it says something:
        that the tool was called otherwise does not."""
        if self.move.again and not (self.move.before or self.move.changes):
            return False
        return 2 * self.agreeing > self.seen and (self.agreeing >= FEWEST or (self.same_task and not self.by_task))


def at_the_same_point(failed: RunDigest, successful: Iterable[RunDigest], common: frozenset[str]) -> Instead | None:
    """What most of the runs of this task that succeeded did where this one got into trouble."""
    moves = []
    for other in successful:
        if (move := _other_way(failed, other, common)) is not None:
            moves.append((other.label, move))
    return _agreed(moves, same_task=True)


def over_tasks(found: Sequence[Instead]) -> Instead | None:
    """What most of several tasks agree on, one of each given; their runs are named together."""
    together = _agreed([(one.run_ids[0], one.move) for one in found if one.convinces], same_task=True)
    return None if together is None else evolve(together, seen=len(found), by_task=True)


def after_the_same(
    failed: Sequence[RunDigest], successful: Iterable[RunDigest], common: frozenset[str]
) -> Instead | None:
    """What most of the successful runs did that met the one kind of trouble of these, and got over it."""
    troubles = [run.trouble for run in failed if run.trouble is not None]
    results = {run.acts[run.trouble.steps[-1]].result for run in failed if run.trouble is not None}
    moves = []
    for other in successful:
        if (move := _recovery(troubles[0].kind, results, other.acts, common)) is not None:
            moves.append((other.label, move))
    return _agreed(moves, same_task=False)


def _agreed(moves: Sequence[tuple[str, Move]], *, same_task: bool) -> Instead | None:
    """The way that most took, by its tools; of those the changes that most made."""
    if not moves:
        return None
    ways = Counter((move.tool, move.before, move.again) for _, move in moves)
    way = min(ways, key=lambda one: (-ways[one], one))
    taken = [(run_id, move) for run_id, move in moves if (move.tool, move.before, move.again) == way]
    changes = _shared(tuple(move.changes for _, move in taken))
    kept = {given_as(text) for text in changes}
    agreeing = [run_id for run_id, move in taken if kept <= set(map(given_as, move.changes))]
    return Instead(
        move=Move(tool=way[0], before=way[1], changes=changes, again=way[2]),
        agreeing=len(agreeing),
        seen=len(moves),
        same_task=same_task,
        run_ids=tuple(agreeing[:MAX_SHOWN]),
    )


def _shared(taken: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The changes that more than half of them made; how it was before is told where that is the same, too."""
    whole = Counter(text for changes in taken for text in changes)
    given = Counter(given_as(text) for changes in taken for text in changes)
    likeliest = {given_as(text): text for text in sorted(whole, key=lambda one: whole[one])}
    enough = [one for changes in taken for one in map(given_as, changes) if 2 * given[one] > len(taken)]
    told = [likeliest[one] if 2 * whole[likeliest[one]] > len(taken) else one for one in dict.fromkeys(enough)]
    return tuple(told[:MAX_CHANGES])


def applies(move: Move, bad: Act) -> bool:
    """Can this call be changed that way: what is left out has to be there, and what is added not?"""
    names = {f"`{one.name}`" for one in bad.given}
    fitting = ((text.split()[1] in names) != text.endswith(" as well") for text in move.changes)
    return not move.again or all(fitting)


def _other_way(failed: RunDigest, other: RunDigest, common: frozenset[str]) -> Move | None:
    """From the last point that both runs share: the next acts of the other that went well and that this one lacks."""
    trouble = failed.trouble
    if trouble is None:
        return None
    start = _start(failed.acts, trouble, other.acts)
    if start is None:
        return None
    ahead = other.acts[start : start + AHEAD]
    before = failed.acts[: trouble.at + 1]
    done = {act.call for act in before}
    known = {act.tool for act in before if not act.fruitless}
    fruitful = [act for act in ahead if not act.fruitless]
    return _move(trouble.kind, failed.acts[trouble.steps[-1]], done, fruitful, known, common)


def _start(acts: Sequence[Act], trouble: Trouble, other: Sequence[Act]) -> int | None:
    """Where the other run's way begins. What came again brought the other run on only if it got the same."""
    bad = acts[trouble.steps[-1]]
    if trouble.kind.form == "repeat":
        same = [n for n, one in enumerate(other) if one.call == bad.call and one.result == bad.result]
        return same[-1] + 1 if same else None
    met = _met_at(trouble.kind, other)
    return met if met is not None else _shared_point(acts[: trouble.steps[0]], other)


def _shared_point(before: Sequence[Act], other: Sequence[Act]) -> int:
    """Just after the newest act before the trouble that the other run did, too; its start where there is none."""
    for act in reversed(before):
        same = [n for n, one in enumerate(other) if one.tool == act.tool and not one.says and _alike(one, act)]
        if same:
            return same[0] + 1
    return 0


def _met_at(kind: Kind, acts: Sequence[Act]) -> int | None:
    """Just after the other run met the same trouble for the last time."""
    return next((at + 1 for at in range(len(acts) - 2, -1, -1) if _meets(kind, acts, at)), None)


def _alike(one: Act, other: Act) -> bool:
    return one.call == other.call or (bool(one.gist) and one.gist == other.gist)


def _recovery(kind: Kind, results: set[int | None], acts: Sequence[Act], common: frozenset[str]) -> Move | None:
    """The newest time that this run met the trouble and something else went well soon after."""
    for at in range(len(acts) - 2, -1, -1):
        if _meets(kind, acts, at) and (kind.form != "repeat" or acts[at].result in results):
            ahead = [act for act in acts[at + 1 : at + 1 + SOON] if not act.fruitless]
            known = {act.tool for act in acts[: at + 1] if not act.fruitless}
            if (move := _move(kind, acts[at], {acts[at].call}, ahead, known, common)) is not None:
                return move
    return None


def _meets(kind: Kind, acts: Sequence[Act], at: int) -> bool:
    act = acts[at]
    if act.tool != kind.tool:
        return False
    if kind.form in ("error", "claimed"):
        return act.error == kind.error
    if kind.form == "empty":
        return act.empty
    return kind.form == "repeat" and any(one.call == act.call and one.result == act.result for one in acts[:at])


def _move(
    kind: Kind, bad: Act, done: set[int | None], ahead: Sequence[Act], known: set[str], common: frozenset[str]
) -> Move | None:
    """The same tool with other arguments, after what came first; else the first tool that is another one, or none.

    Where a call came again, it is not one more of the same tool that helped.
    """
    acting = [act for act in ahead if act.tool and not act.says and act.call not in done]
    at = next((n for n, act in enumerate(acting) if act.tool == bad.tool), None)
    if at is not None and kind.form != "repeat":
        before = dict.fromkeys(act.tool for act in acting[:at] if act.tool not in known)
        changes = changes_of(bad.given, acting[at].given, common)
        if before or changes:
            return Move(tool=bad.tool, before=tuple(before)[:MAX_BEFORE], changes=changes, again=True)
    other = next((act for act in acting if act.tool != bad.tool), None)
    if other is not None:
        return Move(tool=other.tool, changes=given_names(other.given))
    answered = any(act.says for act in ahead) and all(act.tool != bad.tool for act in ahead)
    return Move(tool="") if answered and kind.form in CALLS else None
