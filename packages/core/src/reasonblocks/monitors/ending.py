"""Reads whether a step checks something, declares the work done, or admits that something is missing."""

from __future__ import annotations

import re

from .features import Features

HEAD = 1_000
"""Characters of a thought in which an admission is looked for."""
_CHECKS = frozenset(("test", "read", "search"))
_DONE = re.compile(
    r"\b(?:(?:task|work|implementation|fix|change|changes|everything|all|it|this|that)(?:['’]s| is| are| has been"
    r"| have been)? (?:now )?(?:complete|completed|done|finished|implemented|fixed|resolved)"
    r"|i(?:['’]ve| have) (?:now )?(?:successfully )?(?:completed|finished|fixed|implemented|resolved))\b|\A\W*done\b"
)
_ADMITTED = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure|ures)?|errors?|unable|unfortunately|could not|cannot"
    r"|not (?:available|possible|found|able|exist|work|find|enough)|\w+n['’]t|issues?|problems?|missing|despite"
    r"|persists?|no (?:results?|such|matching|data|information|records?)|nothing|incomplete|partial(?:ly)?|unrelated"
    r"|expected|none)\b"
)


def declares_done(features: Features) -> bool:
    """Return True if a tool that ends the run is called, or the step calls nothing and its thought says it is done."""
    return "finish" in features.roles or (features.call is None and _DONE.search(features.thought) is not None)


def admits(features: Features) -> bool:
    """Return True if the thought mentions a failure, so that its reader is warned."""
    return _ADMITTED.search(features.thought, 0, HEAD) is not None


def checks(features: Features) -> bool:
    """Return True for a look, a test, a change that reports a test, and a command that only shows something."""
    if features.tested or not _CHECKS.isdisjoint(features.roles):
        return True
    return features.shell and "edit" not in features.roles and features.lengths[2] > 0
