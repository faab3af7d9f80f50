"""Describes errors of the caller's code, and masks the secrets in its texts."""

from __future__ import annotations

ERROR_CHARS = 500
"""The most characters of an error that are kept."""
LONGEST = 8_000
"""The most characters of a text that are masked; the rest is dropped."""


def describe_error(error: BaseException) -> str:
    """Return an error as a short text without secrets, also if it cannot be printed."""
    try:
        found = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - the caller's __str__
        found = type(error).__name__
    return mask_text(found[:ERROR_CHARS])


def mask_text(text: str) -> str:
    """Return a text without secrets. Of a longer one, only the first 8,000 characters are kept."""
    if not text:
        return text
    from reasonblocks.masking import without_secrets  # many patterns: 30 ms

    return without_secrets(_whole_words(text), addresses=True)


def _whole_words(text: str) -> str:
    """Cut a text after a whole word: half of a secret could not be recognised."""
    if len(text) <= LONGEST:
        return text
    return text[: max(text.rfind(" ", 0, LONGEST), text.rfind("\n", 0, LONGEST), 0)]
