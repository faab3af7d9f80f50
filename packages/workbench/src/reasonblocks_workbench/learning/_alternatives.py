"""Finds what successful runs did instead: at the same point of the same task, or after the same kind of trouble.

Each successful run is compared with a failed one and yields at most one `Remedy`:

1. Find where the two runs part (`_parting_point`): after a call that gave both the same result, after the same trouble,
   or after the last call that both made. For runs of other tasks it is the step at which the trouble occurred.
2. Take the successful run's next steps, without those that failed, found nothing or repeat a call of the failed run.
3. If one of them calls the tool in trouble, the remedy is its changed arguments and the new tools called before it.
   Otherwise it is the first other tool. If the run only answered, it is to call nothing.

`_majority` then takes the remedy that most of the successful runs share, and counts the runs that agree on it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ._acts import FEW_WORDS, Act, Argument
from ._digest import RunDigest
from ._trouble import Kind, Trouble

MAX_AHEAD = 12
"""Steps of a successful run of the same task, after the parting point, that may hold the remedy."""
MAX_RECOVERY = 3
"""Steps after a trouble that count as a recovery from it."""
MAX_BEFORE = 2
"""Tools that a remedy names as called first."""
MAX_CHANGES = 2
"""Arguments that a remedy names as changed."""
MAX_SHOWN = 5
"""Run ids that a proposal names."""
MIN_AGREEING = 2
"""Runs of other tasks, or tasks, that must agree on a remedy: a single one may be chance."""
CALL_FORMS = ("error", "claimed", "repeat", "empty")
"""Forms of trouble that concern the call of a tool, so that calling nothing is a remedy."""


class Route(NamedTuple):
    """The calls of a remedy, without their arguments."""

    tool: str
    before: tuple[str, ...]
    same_tool: bool


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Remedy:
    """Another way to go on: call the tools in `before`, then `tool` with its arguments changed as in `changes`.

    An empty `tool` means that the run answered and called nothing.
    """

    tool: str
    before: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    same_tool: bool = False
    """True if `tool` is the one that was in trouble."""

    @property
    def route(self) -> Route:
        return Route(self.tool, self.before, self.same_tool)

    @property
    def new_values(self) -> tuple[str, ...]:
        """The changes without the old values; remedies with equal routes and new values teach the same."""
        return tuple(map(without_old_value, self.changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A remedy that `agreeing` of `seen` successful runs used.

    `same_task`: they are runs of the failed run's own task, at the same point. `by_task`: the remedy was found in
    several tasks, so `agreeing` and `seen` count tasks.
    """

    remedy: Remedy
    agreeing: int
    seen: int
    same_task: bool
    run_ids: tuple[str, ...]
    by_task: bool = False

    @property
    def convinces(self) -> bool:
        """True if more than half agree and the remedy is more specific than "the same tool, called differently".

        Across tasks, and for runs of other tasks, at least `MIN_AGREEING` must agree.
        """
        if self.remedy.same_tool and not (self.remedy.before or self.remedy.changes):
            return False
        enough = self.agreeing >= MIN_AGREEING or (self.same_task and not self.by_task)
        return enough and 2 * self.agreeing > self.seen


def alternative_at_same_point(
    failed: RunDigest, successful: Iterable[RunDigest], common: frozenset[str]
) -> Alternative | None:
    """Return what most successful runs of the same task did at the point where this run got into trouble."""
    remedies = []
    for run in successful:
        if (remedy := _remedy_after_parting(failed, run, common)) is not None:
            remedies.append((run.label, remedy))
    return _majority(remedies, same_task=True)


def alternative_after_same_trouble(
    failed: Sequence[RunDigest], successful: Iterable[RunDigest], common: frozenset[str]
) -> Alternative | None:
    """Return how most of the successful runs that met the trouble recovered. All `failed` runs have one kind of it."""
    troubles = [run.trouble for run in failed if run.trouble is not None]
    results = {run.acts[run.trouble.steps[-1]].result for run in failed if run.trouble is not None}
    remedies = []
    for run in successful:
        if (remedy := _recovery(troubles[0].kind, results, run.acts, common)) is not None:
            remedies.append((run.label, remedy))
    return _majority(remedies, same_task=False)


def alternative_across_tasks(found: Sequence[Alternative]) -> Alternative | None:
    """Return what most of several tasks agree on, given one alternative for each task."""
    remedies = [(alternative.run_ids[0], alternative.remedy) for alternative in found if alternative.convinces]
    agreed = _majority(remedies, same_task=True)
    return None if agreed is None else replace(agreed, seen=len(found), by_task=True)


def applies(remedy: Remedy, failing: Act) -> bool:
    """Return True if this call can be changed so: it has the arguments to change, and not yet those to add."""
    names = {f"`{argument.name}`" for argument in failing.arguments}
    fitting = ((text.split()[1] in names) != text.endswith(" as well") for text in remedy.changes)
    return not remedy.same_tool or all(fitting)


def _majority(remedies: Sequence[tuple[str, Remedy]], *, same_task: bool) -> Alternative | None:
    """Return the commonest route, with the changes that most runs on it made. Each remedy comes with its run's id."""
    if not remedies:
        return None
    counts = Counter(remedy.route for _, remedy in remedies)
    route = min(counts, key=lambda candidate: (-counts[candidate], candidate))
    on_route = [(run_id, remedy) for run_id, remedy in remedies if remedy.route == route]
    changes = _majority_changes([remedy.changes for _, remedy in on_route])
    remedy = Remedy(tool=route.tool, before=route.before, changes=changes, same_tool=route.same_tool)
    agreeing = [run_id for run_id, other in on_route if set(remedy.new_values) <= set(other.new_values)]
    return Alternative(
        remedy=remedy,
        agreeing=len(agreeing),
        seen=len(remedies),
        same_task=same_task,
        run_ids=tuple(agreeing[:MAX_SHOWN]),
    )


def _majority_changes(changes_by_run: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the changes that more than half of the runs made; with the old value if more than half share that too."""
    whole = Counter(change for changes in changes_by_run for change in changes)
    new = Counter(without_old_value(change) for changes in changes_by_run for change in changes)
    commonest = {without_old_value(change): change for change in sorted(whole, key=lambda change: whole[change])}
    half = len(changes_by_run) / 2
    agreed = [change for change in _new_values_in_order(changes_by_run) if new[change] > half]
    shown = [commonest[change] if whole[commonest[change]] > half else change for change in agreed]
    return tuple(shown[:MAX_CHANGES])


def _new_values_in_order(changes_by_run: Sequence[tuple[str, ...]]) -> Iterable[str]:
    return dict.fromkeys(without_old_value(change) for changes in changes_by_run for change in changes)


def _remedy_after_parting(failed: RunDigest, successful: RunDigest, common: frozenset[str]) -> Remedy | None:
    """Return how the successful run went on from the last point that both runs share."""
    trouble = failed.trouble
    if trouble is None:
        return None
    start = _parting_point(failed.acts, trouble, successful.acts)
    if start is None:
        return None
    before = failed.acts[: trouble.at + 1]
    return _remedy(
        trouble.kind,
        failed.acts[trouble.steps[-1]],
        ahead=[act for act in successful.acts[start : start + MAX_AHEAD] if not act.fruitless],
        calls_made={act.call for act in before},
        known_tools={act.tool for act in before if not act.fruitless},
        common=common,
    )


def _parting_point(failed: Sequence[Act], trouble: Trouble, successful: Sequence[Act]) -> int | None:
    """Return the index in the successful run at which it goes its own way.

    A repeated call counts as shared only if it gave the other run the same result.
    """
    failing = failed[trouble.steps[-1]]
    if trouble.kind.form == "repeat":
        same = [n for n, act in enumerate(successful) if act.call == failing.call and act.result == failing.result]
        return same[-1] + 1 if same else None
    for at in range(len(successful) - 2, -1, -1):
        if _has_trouble(trouble.kind, successful, at):
            return at + 1
    return _after_last_shared(failed[: trouble.steps[0]], successful)


def _after_last_shared(before: Sequence[Act], successful: Sequence[Act]) -> int:
    """Return the index after the newest act that both runs did; 0 if there is none."""
    for act in reversed(before):
        for n, other in enumerate(successful):
            if other.tool == act.tool and not other.says and _similar(other, act):
                return n + 1
    return 0


def _similar(act: Act, other: Act) -> bool:
    return act.call == other.call or (bool(act.gist) and act.gist == other.gist)


def _recovery(kind: Kind, results: set[int | None], acts: Sequence[Act], common: frozenset[str]) -> Remedy | None:
    """Return how this run recovered from the trouble the last time that it did."""
    for at in range(len(acts) - 2, -1, -1):
        if not _has_trouble(kind, acts, at) or (kind.form == "repeat" and acts[at].result not in results):
            continue
        remedy = _remedy(
            kind,
            acts[at],
            ahead=[act for act in acts[at + 1 : at + 1 + MAX_RECOVERY] if not act.fruitless],
            calls_made={acts[at].call},
            known_tools={act.tool for act in acts[: at + 1] if not act.fruitless},
            common=common,
        )
        if remedy is not None:
            return remedy
    return None


def _has_trouble(kind: Kind, acts: Sequence[Act], at: int) -> bool:
    """Return True if step `at` shows trouble of this kind."""
    act = acts[at]
    if act.tool != kind.tool:
        return False
    if kind.form in ("error", "claimed"):
        return act.error == kind.error
    if kind.form == "empty":
        return act.empty
    return kind.form == "repeat" and any(
        earlier.call == act.call and earlier.result == act.result for earlier in acts[:at]
    )


def _remedy(
    kind: Kind,
    failing: Act,
    *,
    ahead: Sequence[Act],
    calls_made: set[int | None],
    known_tools: set[str],
    common: frozenset[str],
) -> Remedy | None:
    """Return what the steps `ahead` did instead of the failing call.

    After a repeated call, one more call of the same tool is not what helped, so only another tool counts.
    """
    acting = [act for act in ahead if act.tool and not act.says and act.call not in calls_made]
    at = next((n for n, act in enumerate(acting) if act.tool == failing.tool), None)
    if at is not None and kind.form != "repeat":
        before = dict.fromkeys(act.tool for act in acting[:at] if act.tool not in known_tools)
        changes = _changes(failing.arguments, acting[at].arguments, common)
        if before or changes:
            return Remedy(tool=failing.tool, before=tuple(before)[:MAX_BEFORE], changes=changes, same_tool=True)
    other = next((act for act in acting if act.tool != failing.tool), None)
    if other is not None:
        names = tuple(f"`{argument.name}`" for argument in other.arguments[:MAX_CHANGES])
        return Remedy(tool=other.tool, changes=names)
    answered = any(act.says for act in ahead) and all(act.tool != failing.tool for act in ahead)
    return Remedy(tool="") if answered and kind.form in CALL_FORMS else None


def _changes(failing: Sequence[Argument], working: Sequence[Argument], common: frozenset[str]) -> tuple[str, ...]:
    """Describe how the arguments of the working call differ, the most telling change first."""
    before = {argument.name: argument for argument in failing}
    after = {argument.name: argument for argument in working}
    ranked = [(1, f"without `{name}`") for name in sorted(before) if name not in after]
    ranked += [(2, f"with `{name}` as well") for name in sorted(after) if name not in before]
    for name in sorted(before.keys() & after.keys()):
        old, new = _described(before[name], common), _described(after[name], common)
        if _broad_form(old) != _broad_form(new):
            ranked.append((0, f"with `{name}` as {_without_length(new)} instead of {_without_length(old)}"))
        elif _word_count(new) < _word_count(old):  # fewer words find more
            ranked.append((3, f"with `{name}` as {new} instead of {old}"))
    return tuple(text for _, text in sorted(ranked)[:MAX_CHANGES])


def without_old_value(change: str) -> str:
    return change.partition(" instead of ")[0]


def _described(argument: Argument, common: frozenset[str]) -> str:
    """Return the value's word if it is common enough to be shown, otherwise its form."""
    return f"`{argument.word}`" if argument.word and argument.word in common else argument.form


_COUNT = re.compile(r"(\d+) words")


def _broad_form(form: str) -> str:
    """Return the form without its number, because a change between text and list matters more than one of length."""
    return _without_length(_COUNT.sub("a text", form.replace("one word", "1 words").replace("a longer text", "a text")))


def _without_length(form: str) -> str:
    return "a list" if form.startswith("a list of ") else form


def _word_count(form: str) -> int:
    """Return how many words a text has, 0 for any other form."""
    found = _COUNT.fullmatch(form.replace("one word", "1 words").replace("a longer text", f"{FEW_WORDS + 1} words"))
    return int(found[1]) if found else 0
