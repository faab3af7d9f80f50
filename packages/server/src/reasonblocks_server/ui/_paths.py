"""Writes and reads the addresses of runs, patterns and other things, whose ids may hold any characters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from urllib.parse import quote, unquote, urlencode

HOME = "/ui/"
RUNS, PATTERNS, EXPERIMENTS = "/ui/runs/", "/ui/patterns/", "/ui/experiments/"
THREADS, MEMORY = "/ui/threads/", "/ui/memory/"
_TAKEN_OUT = frozenset({"", ".", ".."})
"""Segments that browsers remove from an address, even if they are percent-encoded."""
_HELD = "~id:"
"""The prefix of an id that browsers would remove, or that begins with this prefix itself."""


def href(base: str, id: str, *parts: str) -> str:
    """Return the address of a thing with any id, or of one of its parts."""
    held = _HELD + id if id in _TAKEN_OUT or id.startswith(_HELD) else id
    return base + "/".join(quote(part, safe="~:", errors="surrogatepass") for part in (held, *parts))


run_href = partial(href, RUNS)
pattern_href = partial(href, PATTERNS)
experiment_href = partial(href, EXPERIMENTS)
thread_href = partial(href, THREADS)
codebase_href = partial(href, MEMORY)


def id_in(base: str, raw_path: str) -> tuple[str, list[str]]:
    """Return the id and the further segments of an address as it was sent, before any decoding."""
    first, *rest = raw_path.removeprefix(base).split("/")
    return unquote(first, errors="replace").removeprefix(_HELD), [unquote(part, errors="replace") for part in rest]


def with_query(path: str, values: Mapping[str, str]) -> str:
    """Return the path with the values that are not empty as its query."""
    query = urlencode({name: value for name, value in values.items() if value}, errors="replace")
    return f"{path}?{query}" if query else path


def local(target: str) -> str:
    """Return the address if it is one of the dashboard, and otherwise the home page."""
    plain = target.startswith(HOME) and "\\" not in target and not any(ord(char) < 33 for char in target)
    return target if plain else HOME
