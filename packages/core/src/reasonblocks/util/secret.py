"""Hides API keys, and URLs that contain one, from reprs, log lines and errors."""

from __future__ import annotations

from urllib.parse import urlsplit

UNREDACTED = "[redaction failed]"
"""Replaces a text that the caller's `redact` failed on."""
KEY_RULE = "must be a string of printable ASCII that is not empty"


class Secret:
    """Wraps a value so that only `reveal()` shows it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"


def is_key(value: object) -> bool:
    """Return True if a header can carry the value. The HTTP library would show any other key in its error."""
    return isinstance(value, str) and value != "" and value.isascii() and value.isprintable()


def describe_key(value: object) -> str:
    """Return the text that an error shows instead of a key."""
    return f"{len(value)} characters" if isinstance(value, str) else f"a value of type {type(value).__name__}"


def shown_url(url: object) -> str:
    """Return the URL without user, password, query and fragment."""
    if not isinstance(url, str):
        return describe_key(url)
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{len(url)} characters that are no URL"
    host = parts.netloc.rpartition("@")[2]
    hidden = " (the rest is hidden)" if host != parts.netloc or parts.query or parts.fragment else ""
    return f"{parts.scheme}://{host}{parts.path}{hidden}" if host else f"{len(url)} characters that are no URL"


def mask_key(secret: Secret) -> str:
    """Return what identifies a key and opens nothing: the id of a key `rbk_<id>_<secret>`, else only its length."""
    text = secret.reveal()
    parts = text.split("_", 2)
    if len(parts) == 3 and parts[0] == "rbk" and 0 < len(parts[1]) <= 32 and parts[2]:
        return f"rbk_{parts[1]}_***"
    return f"*** ({len(text)} characters)"
