"""The phrases of which monitors make their texts. Each is checked against the remembered actions that it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

from .advice import next_step
from .excerpts import call_line, literal
from .forms import Form
from .recall import Action, Recall
from .roles import roles_of
from .untried import Alternatives

MAX_PLACES = 4
"""Places in the history that a text lists; of more it names the newest only."""

INSISTENT = 3
"""Equal calls, each with the same result, that every text names before anything else."""

_ASIDE = ", times and ids aside"
"""Ends a statement about calls or results that are equal with times and ids masked, but not exactly."""


def places(distances: Sequence[int], unit: str) -> str:
    """Return "your last call, 2 and 5 calls ago" for 1, 2 and 5; "your last 3 calls" for 1, 2 and 3."""
    near = sorted({*distances})
    if near == [*range(1, len(near) + 1)]:
        return f"your last {unit}" if len(near) == 1 else f"your last {len(near)} {unit}s"
    if len(near) > MAX_PLACES:
        return f"most recently {places(near[:1], unit)}"
    if near[0] == 1:
        return f"your last {unit}, {joined([str(distance) for distance in near[1:]])} {unit}s ago"
    return f"{joined([str(distance) for distance in near])} {unit}s ago"


def joined(parts: Sequence[str]) -> str:
    """Return "a", "a and b", or "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def where(recall: Recall, actions: Sequence[Action]) -> str:
    """Return the place of actions in the history, in calls, or in turns if there were parallel calls since."""
    since = recall.actions[-max(map(recall.ago, actions)) :]
    if any(action.several for action in since):
        return places([recall.index - action.step + 1 for action in actions], "turn")
    return places([recall.ago(action) for action in actions], "call")


def turns(recall: Recall, steps: Sequence[int], unit: str = "turn") -> str:
    """Return the place of steps in the history, in turns; each step is one answer of the agent."""
    return places([recall.index - step + 1 for step in steps], unit)


def times(recall: Recall, count: int) -> str:
    """Return "3 times", and of how many calls if some are forgotten."""
    return f"{count} times" + (
        f" in your last {len(recall.actions)} calls" if recall.calls > len(recall.actions) else ""
    )


def quoted(action: Action) -> str:
    """Return ': "the result's line"', or nothing if it may not be quoted."""
    return f": {literal(action.line)}" if action.line else ""


def same_results(actions: Sequence[Action]) -> str:
    """Return ", each time with the same result: ..." as far as it holds for these actions; else nothing."""
    last = actions[-1]
    if any(action.result != last.result for action in actions):
        return ""
    if not last.exact_result:
        return ", each time without a result" if not any(action.exact_result for action in actions) else ""
    if all(action.is_blank for action in actions):
        return ", and each time nothing came back"
    noun = "error" if all(action.failed for action in actions) else "result"
    if all(action.exact_result == last.exact_result for action in actions):
        return f", each time with the same {noun}{quoted(last)}"
    return f", each time with the same {noun}{_ASIDE}{quoted(last).replace(':', '; last:', 1)}"


def repeated(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about a call that was made again with the same result; "" if the actions do not show it."""
    found = recall.at(steps)
    if len(found) < 2 or not found[-1].shown:
        return ""
    last = found[-1]
    exact = recall.like(last)
    if len(exact) > 1:
        return _repeated_exactly(recall, exact, rung)
    near = [action for action in recall.actions if action.call == last.call]
    if len(near) < 2:
        return ""
    return f"You have made nearly the same call {times(recall, len(near))}, the last being {last.shown}{_back(near)}."


def _repeated_exactly(recall: Recall, exact: Sequence[Action], rung: int) -> str:
    place = f" ({where(recall, exact)})" if rung == 1 else ""
    return f"You have called {exact[-1].shown} {times(recall, len(exact))}{place}{_back(exact)}."


def _back(actions: Sequence[Action]) -> str:
    """Return the phrase for what came back: the same each time, or the newest times, or else the last error."""
    last = actions[-1]
    same = [last]
    for action in actions[-2::-1]:
        if action.result != last.result:
            break
        same.insert(0, action)
    if len(same) == len(actions):
        return same_results(actions)
    if len(same) > 1:
        said = same_results(same)
        return said.replace("each time", f"the last {len(same)} times", 1)
    return f", and it failed each time, the last time with{quoted(last)}" if last.line and _failed(actions) else ""


def _failed(actions: Sequence[Action]) -> bool:
    return all(action.failed for action in actions)


def insisted(recall: Recall) -> list[Action]:
    """Return all remembered calls like the newest one, if its newest repetitions brought the same; else none."""
    if not recall.actions or not recall.actions[-1].shown:
        return []
    exact = recall.like(recall.actions[-1])
    newest = exact[-INSISTENT:]
    edited = any(action.edits for action in recall.actions if action.step > newest[0].step)
    same = len({action.result for action in newest}) == 1 or (_failed(newest) and not edited)
    return exact if len(newest) == INSISTENT and same else []


def who(recall: Recall, actions: Sequence[Action], noun: str = "calls") -> str:
    """Return "Your last 3 calls", or "3 calls (your last call, 3 and 5 calls ago)"; `noun` replaces "calls"."""
    place = where(recall, actions)
    count = len(actions)
    return f"Your last {count} calls" if place == f"your last {count} calls" else f"{count} {noun} ({place})"


def circle(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about a circle of calls that ends with the newest of these steps, or ""."""
    actions = [action for action in recall.actions if steps and action.step <= steps[-1]]
    outcomes = [action.outcome for action in actions]
    for period in range(2, len(outcomes) // 2 + 1):
        if outcomes[-period:] == outcomes[-2 * period : -period] and len({*outcomes[-period:]}) > 1:
            around = who(recall, actions[-2 * period :])
            if rung == 1:
                return f"{around} went twice around the same circle of {period} calls, with the same results."
            return f"{around} went around one circle of {period} calls."
    return ""


def failures(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about calls that failed: all of the newest in a row, or those of one error; or ""."""
    failed = failing(recall, steps)
    if len(failed) < 2:
        return ""
    last = failed[-1]
    subject, said = who(recall, failed), quoted(last)
    more = failed == [*recall.actions] and recall.failed_row > len(failed)
    if more:
        subject = f"Your last {recall.failed_row} calls"
    if more or not last.error or any(action.error != last.error for action in failed):
        return f"{subject} failed{', the last one with' + said if said else ''}."
    if _all_equal([action.exact_result for action in failed]):
        return f"{subject} ended in the same error{said}."
    aside = ", names and numbers aside"
    return f"{subject} ended in the same error{aside}{'; the last one' + said if said else ''}."


def failing(recall: Recall, steps: Sequence[int]) -> list[Action]:
    """Return the failed calls that a text is about; an error is settled once the same call has succeeded."""
    newest = recall.failed_lately()
    if len(newest) > 1:
        return newest
    found = [action for action in recall.at(steps) if action.failed and not recall.is_cured(action)]
    if not found or not found[-1].error:
        return found
    same = [action for action in recall.actions if action.failed and action.error == found[-1].error]
    return [action for action in same if action.step <= found[-1].step and not recall.is_cured(action)]


def _all_equal(values: Sequence[object]) -> bool:
    return len({*values}) == 1


def same_result(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about different calls with the same result, or ""."""
    found = recall.at(steps)
    same = [action for action in found if action.exact_result and action.result == found[-1].result]
    if len(same) < 2 or len({(action.call, action.exact_call) for action in same}) < len(same):
        return ""
    aside = "" if all(action.exact_result == same[-1].exact_result for action in same) else _ASIDE
    shown = quoted(same[-1]) if rung == 1 and not aside else ""
    subject = who(recall, same, "different calls")
    return f"{subject}{' were all different and' * subject.startswith('Your')} got the same result{aside}{shown}."


def nothing_found(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about searches without a result, or ""."""
    empty = [*takewhile(lambda action: action.is_empty, reversed(recall.actions))][::-1]
    if len(empty) < 2:
        empty = [action for action in recall.at(steps) if action.is_empty]
    if len(empty) < 2 or not empty[-1].shown:
        return ""
    last = f", the last one being {empty[-1].shown}" if rung == 1 else ""
    return f"{who(recall, empty, 'searches')} found nothing{last}."


def nothing_new(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about results that brought nothing new, or ""."""
    return _of_all(recall, recall.at(steps), steps, rung, "brought next to nothing that was not in earlier results")


def unread(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about messages in which no call could be read; they are not among the remembered actions."""
    if len(steps) < 2 or any(action.step in steps for action in recall.actions):
        return ""
    return f"No call could be read in {len(steps)} of your messages ({turns(recall, steps, 'message')})."


def nothing_gained(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about calls that brought errors or nothing new, or ""."""
    return _of_all(recall, recall.at(steps), steps, rung, "brought only errors or what was in earlier results")


def had_before(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about calls that brought the same result before, or ""."""
    before = [action.outcome for action in recall.actions]
    again = [action for action in recall.at(steps) if action.outcome in before[: len(before) - recall.ago(action)]]
    if len(again) < 2 or not again[-1].shown:
        return ""
    last = f", the last one being {again[-1].shown}" if rung == 1 else ""
    return f"{who(recall, again)} were made before, with the same results{last}."


def in_vain(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about calls that failed or brought a result that was there before, or ""."""
    before = [action.result for action in recall.actions]
    vain = [
        action
        for action in recall.at(steps)
        if action.failed or action.result in before[: len(before) - recall.ago(action)]
    ]
    return _of_all(recall, vain, steps, rung, "failed, or brought a result that was there before")


def _of_all(recall: Recall, actions: Sequence[Action], steps: Sequence[int], rung: int, said: str) -> str:
    """Return what is said of these actions, the newest one named; if all of them failed, the sentence about that."""
    if len(actions) < 2 or not actions[-1].shown:
        return ""
    if _failed(actions):
        return failures(recall, steps, rung)
    last = f", the last one being {actions[-1].shown}" if rung == 1 else ""
    return f"{who(recall, actions)} {said}{last}."


def changed_again(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about a change that was made again, or ""."""
    made = [action for action in recall.at(steps) if action.edits]
    if len(made) < 2 or not made[-1].shown:
        return ""
    exact = [action for action in recall.like(made[-1]) if not action.failed]
    if len(exact) < 2:
        return f"You have made nearly the same change {times(recall, len(made))}, the last being {made[-1].shown}."
    place = f" ({where(recall, exact)})" if rung == 1 else ""
    return f"You have made the same change {times(recall, len(exact))}{place}: {exact[-1].shown}."


Phrase = Callable[[Recall, Sequence[int], int], str]
"""Makes the evidence sentence from the actions of these steps, for a rung; "" if they do not show it."""

STALE_ADVICE: Mapping[int, str] = {
    1: "Say in one line what is still missing, and take the step that would bring that.",
    2: "Say what is still missing, and go for that.",
    3: "Say what is still missing, and take a step of another kind for that.",
}
"""The next action for each rung after results that brought nothing new, and were neither errors nor empty."""
SAME_ADVICE: Mapping[int, str] = {
    1: "What differs between these calls made no difference: change something else.",
    2: "Change something else now.",
    3: "What differs between them makes no difference: take a step of another kind.",
}
"""The next action for each rung after different calls with the same result."""


def told(recall: Recall, steps: Sequence[int], rung: int, phrase: Phrase, advice: Mapping[int, str]) -> str:
    """Return a text that is about what lasts: the newest call again and again, failures up to now, or this finding.

    `advice` is for calls that brought something; after errors, refusals and empty results the result decides. The text
    is "" if no call can be named.
    """
    if again := insisted(recall):
        return composed(_repeated_exactly(recall, again, rung), next_step(recall, again, rung), recall)
    evidence = failures(recall, steps, rung) if len(recall.failed_lately()) > 1 and phrase is not repeated else ""
    found = failing(recall, steps) if evidence or phrase is failures else recall.at(steps)
    evidence = evidence or phrase(recall, steps, rung)
    if not evidence or not found:
        return ""
    last = found[-1]
    plain = not (last.failed or last.refused or last.is_empty or last.is_blank)
    if phrase is repeated:
        found = recall.like(last)
    return composed(evidence, advice[rung] if plain and advice else next_step(recall, found, rung), recall)


def composed(evidence: str, advice: str, recall: Recall) -> str:
    """Return a text: the evidence, and the untried alternatives that the run itself holds, or else the advice.

    After an error they are named only if they are in it, or if it complains that something does not exist.
    """
    if not evidence:
        return ""
    found, last = recall.untried, recall.actions[-1] if recall.actions else None
    apt = not (last and last.failed) or ((found.newest or last.misses) and not found.here)
    return f"{evidence} {(_untried(found, recall) if apt else '') or advice}"


def _leads_away(found: Alternatives, showed: Sequence[Action], recall: Recall) -> bool:
    """Return True if the tool that takes members showed this older list itself, and was called since.

    So it leads from place to place, and the last place, such as a room with one door, has no list.
    """
    if found.newest or found.form is None or found.form.prefix or not showed:
        return False
    tool = f"{found.form.tool}("
    return showed[-1].shown.startswith(tool) and recall.actions[-1].shown.startswith(tool)


def _looks_up(form: Form) -> bool:
    """Return True if the call reads or searches: that works from anywhere."""
    return not {"read", "search"}.isdisjoint(roles_of(form.tool, "", "", {}))


def _calls(form: Form, names: Sequence[str]) -> list[str]:
    """Return the calls that were not made yet; none if one would be shortened: an agent cannot make that."""
    calls = [call_line([form.call(name)]) for name in names]
    parts = [f"{form.tool}(", *[f"{name}=" for name in form.given]]
    whole = all(call.startswith(parts[0]) and all(part in call for part in parts) for call in calls)
    return calls if whole and not any("…" in call for call in calls) else []


def _untried(found: Alternatives, recall: Recall) -> str:
    """Return the sentence about the calls that were not made yet; "" without any, or if one cannot be written.

    Where a list was shown elsewhere, the call that showed it comes first.
    """
    form = found.form
    calls = _calls(form, found.names) if form else []
    if form is None or not calls or (found.here and _looks_up(form)):
        return ""
    showed = [action for action in recall.at((found.seen,)) if action.shown and not action.several]
    if _looks_up(form) or not (found.elsewhere or _leads_away(found, showed, recall)):
        return f"Not tried yet{' after this result' * found.here}: {', '.join(calls)}."
    if showed and "…" not in showed[-1].shown:
        return f"Not tried yet: {showed[-1].shown} and then {calls[0]}."
    return ""
