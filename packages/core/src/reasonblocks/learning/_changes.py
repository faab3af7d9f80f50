"""How a call that went well was given other arguments, in words that tell nothing of what they hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ._acts import FEW_WORDS, Given

__all__ = ["MOST_CHANGES", "changes_of", "given_as", "given_names"]

MOST_CHANGES = 2
"""Arguments that are named as given differently."""


def given_as(change: str) -> str:
    return change.partition(" instead of ")[0]


def given_names(given: Sequence[Given]) -> tuple[str, ...]:
    return tuple(f"`{one.name}`" for one in given[:MOST_CHANGES])


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
    return tuple(text for _, text in sorted(said)[:MOST_CHANGES])


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
