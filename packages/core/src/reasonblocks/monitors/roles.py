"""Decides how much of a tool's results a text may show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ..account.calls import (
    CHECK,
    COMMAND_HEAD,
    FOREIGN,
    LIST,
    NAME_HEAD,
    READ,
    SEARCH,
    command_of,
    is_shell,
    parts_of,
    role_by_name,
    runs_code,
)
from ..types import JSON, ToolCall

ROLES = ("change", "check", "read", "list", "search", "ask", "finish", "edit", "test", *FOREIGN)
"""The roles that a caller may give to a tool; `edit` and `test` are older names of `change` and `check`."""
_EDITS = frozenset("edit write replace insert patch overwrite".split())
"""Verbs of tools that change the user's own files."""
_FOREIGN_PARTS = frozenset(
    "web website websites webpage webpages site sites page pages browse browser url urls link links http "
    "https html wikipedia wiki internet online google bing duckduckgo tavily serp crawl crawler scrape "
    "scraper fetch download rss news feed feeds review reviews feedback mail mails email emails inbox gmail "
    "outlook calendar chat chats slack discord telegram wechat skype teams zoom whatsapp sms dm message "
    "messages channel channels comment comments tweet tweets post posts forum thread threads reply replies "
    "conversation conversations issue issues ticket tickets blog blogs article articles reddit twitter "
    "facebook youtube linkedin instagram tiktok zendesk jira sms voicemail transcript transcripts "
    "notification notifications support meeting meetings response responses pull attachment attachments "
    "submission submissions survey surveys guestbook".split()
)
"""Parts of the names of tools that return other people's text."""
_FETCHES = re.compile(r"(?:^|[;&|(\n][ \t]*)(?:curl|wget|lynx|httpx?|gh|mail)\s|https?://")


def trust_of(call: ToolCall, given: Mapping[str, str]) -> str:
    """Return how much of a call's results may be shown.

    - "full": a line of it, since a tool of this role returns what is the user's own.
    - "names": only names from its lists, since the tool's role is unknown.
    - "none": nothing, since the tool returns other people's text.
    """
    own = given.get(call.name)
    if own:
        return "none" if own in FOREIGN else "full"
    trust = _trust_by_name(call.name[:NAME_HEAD])
    if trust == "names" and runs_code(call.name) and is_shell(call.name, command_of(call)):
        trust = "full"
    return "none" if trust != "none" and _fetches(call.arguments) else trust


def _fetches(given: JSON) -> bool:
    """Return True if an argument has a URL in it, or is a command that fetches something."""
    values = given.values() if isinstance(given, Mapping) else (given,)
    return any(_FETCHES.search(value, 0, COMMAND_HEAD) for value in values if isinstance(value, str))


@lru_cache(maxsize=1024)
def _trust_by_name(name: str) -> str:
    parts = parts_of(name)
    if not _FOREIGN_PARTS.isdisjoint(parts):
        return "none"
    own = is_shell(name) or role_by_name(name) in (CHECK, READ, LIST, SEARCH) or not _EDITS.isdisjoint(parts)
    return "full" if own else "names"


def looks_up(tool: str) -> bool:
    """Return True if a tool of this name reads or searches: that works from anywhere."""
    return role_by_name(tool[:NAME_HEAD]) in (READ, LIST, SEARCH)
