"""Keys, and URLs that hold one: what no repr, log line or error may show."""

from __future__ import annotations

from urllib.parse import urlsplit

__all__ = ["KEY_RULE", "Secret", "described", "is_key", "shown_url"]

KEY_RULE = "must be a string of printable ASCII that is not empty"


class Secret:
    """A value that shows only where it is asked for."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"


def is_key(value: object) -> bool:
    """Can it be sent in a header? A library that cannot send it would show it in its error."""
    return isinstance(value, str) and value != "" and value.isascii() and value.isprintable()


def described(value: object) -> str:
    """What an error shows in the place of a key."""
    return f"{len(value)} characters" if isinstance(value, str) else f"a value of type {type(value).__name__}"


def shown_url(url: object) -> str:
    """The URL without user, password, query and fragment."""
    if not isinstance(url, str):
        return described(url)
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{len(url)} characters that are no URL"
    host = parts.netloc.rpartition("@")[2]
    hidden = " (the rest is hidden)" if host != parts.netloc or parts.query or parts.fragment else ""
    return f"{parts.scheme}://{host}{parts.path}{hidden}" if host else f"{len(url)} characters that are no URL"
