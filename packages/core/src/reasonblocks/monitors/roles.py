"""Assigns roles to a tool call (edit, test, read, search, finish), and whether its results may be quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from ..types import JSON, ToolCall

FOREIGN = ("web", "mail", "chat")
"""The roles of tools that return other people's text: no text to the agent may quote it."""
ROLES = ("edit", "test", "read", "search", "finish", *FOREIGN)
"""The roles that a caller may give to a tool."""

COMMAND_HEAD = 2_000
"""Characters of a shell command, or of other arguments, that are read."""
NAME_HEAD = 200
"""Characters of a tool's name that are read."""

_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PATH = re.compile(r"[\w.-]/[\w.-]|\b\w[\w-]{0,80}\.[A-Za-z]\w{0,4}\b")
_SHELLS = {"bash", "shell", "sh", "terminal", "execute", "exec", "command", "cmd", "console", "powershell", "zsh"}
_PARTS = {
    "edit": {"edit", "write", "replace", "insert", "patch", "overwrite"},
    "change": {"apply", "create", "append", "rename", "update", "delete", "modify", "save"},
    "file": {"file", "files", "code", "notebook", "document"},
    "test": {
        "test",
        "tests",
        "pytest",
        "lint",
        "verify",
        "validate",
        "check",
        "checks",
        "typecheck",
        "compile",
        "build",
    },
    "read": {"read", "view", "get", "open", "cat", "show", "fetch", "describe", "list", "load", "inspect", "retrieve"},
    "search": {"search", "find", "grep", "query", "glob", "lookup", "browse"},
    "finish": {"finish", "submit", "done", "complete", "answer", "final"},
}
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
_FETCH_MARKS = ("curl", "wget", "lynx", "http", "gh", "mail")
"""Marks, one of which is in every text that `_FETCHES` matches."""
_BY_COMMAND = (
    (
        "test",
        re.compile(
            r"\b(?:pytest|unittest|nosetests|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|runtests|mypy|flake8|eslint"
            r"|ruff check|manage\.py test)\b"
            r"|\b(?:npm|yarn|pnpm|go|cargo|make|mvn|gradle|dotnet|rake)\s+(?:run\s+)?(?:test|check|build)"
            r"|\bpython[\d.]*\s+(?:-c\b|-m\b|-\s|\S+\.py|<<)|\bnode\s+\S+\.[cm]?js|(?:^|[;&|]\s*)\./\S+"
        ),
    ),
    (
        "edit",
        re.compile(
            r"\bsed\s+(?:-\w+\s+){0,8}-i|\bperl\s+-\w*i|\bgit\s+(?:apply|checkout|reset|restore|stash)|\bpatch\b|\btee\b"
            r"|(?<![\d&=-])>>?\s*(?!/dev/|&)[A-Za-z_./~\"'$-]|\bopen\([^)]{0,200}['\"][wa]\b|\.write_text\("
            r"|(?:^|[;&|]\s*)(?:mv|cp|rm|touch|mkdir)\s|^\s*(?:INSERT|UPDATE|DELETE|ALTER|CREATE|DROP)\b"
        ),
    ),
    ("search", re.compile(r"(?:^|[;&|\n][ \t]*)(?:grep|egrep|rg|ag|find|fd|locate|git grep|ls|tree|which)\b")),
    (
        "read",
        re.compile(
            r"(?:^|[;&|\n][ \t]*)(?:cat(?!\s*(?:>|<<))|head|tail|less|more|nl|wc|sed\s+-n|awk"
            r"|git\s+(?:diff|log|show|status|blame))\b"
            r"|^\s*(?:SELECT|SHOW|DESCRIBE|DESC|EXPLAIN)\b"
        ),
    ),
)
_EDITS = (
    "sed", "perl", "git", "patch", "tee", ">", "open(", ".write_text(", "mv", "cp", "rm", "touch", "mkdir",
    "INSERT", "UPDATE", "DELETE", "ALTER", "CREATE", "DROP",
)  # fmt: skip
_TESTS = (
    "test", "tox", "nox", "jest", "mocha", "rspec", "phpunit", "mypy", "flake8", "eslint", "ruff check", "check",
    "build", "python", "node", "./",
)  # fmt: skip
_MARKS = {"edit": _EDITS, "test": _TESTS}
"""Marks of two long patterns, one of which is in every command that the pattern matches: without any, it is not
tried."""
_QUERY = re.compile(r"\s*(?:SELECT|SHOW|DESCRIBE|DESC|EXPLAIN)\b")
"""A query, which only reads, although it may compare with ">"."""
_WRITES = re.compile(r"\b(?:cat|tee)\b")
_UNTIL = re.compile(r"<<-?[ ]*(['\"]?)(\w+)\1")


def roles_of(name: str, command: str, arguments: str, given: Mapping[str, str]) -> tuple[str, ...]:
    """Return the roles of one call: those that the caller set, else by a shell's command, else by the tool's name.

    A role of `FOREIGN` only concerns quoting: the call keeps the others.
    """
    own = given.get(name)
    if own in FOREIGN:
        return (*_own_roles(name, command, arguments), own)
    return (own,) if own else _own_roles(name, command, arguments)


def _own_roles(name: str, command: str, arguments: str) -> tuple[str, ...]:
    role = _by_name(name[:NAME_HEAD])[1]
    if command and is_shell(name, command):
        if _QUERY.match(command):
            return ("read",)
        head = command[:COMMAND_HEAD]
        if "<<" in head:
            head = "\n".join(_commands(head))
        return tuple([role for role, pattern in _BY_COMMAND if _may_be(role, head) and pattern.search(head)])
    if role == "change":
        return ("edit",) if _PATH.search(arguments[:COMMAND_HEAD]) else ()
    return (role,) if role else ()


def _may_be(role: str, command: str) -> bool:
    return role not in _MARKS or any(map(command.__contains__, _MARKS[role]))


def _commands(script: str) -> Iterator[str]:
    """Yield the lines of a script, except those of a here-document that is written to a file: they are no commands."""
    end = None
    for line in script.split("\n"):
        if end is not None:
            end = None if line.strip(" \t") == end else end
            continue
        yield line
        until = _UNTIL.search(line)
        end = until[2] if until and _WRITES.search(line, 0, until.start()) else None


def is_shell(name: str, command: str = "") -> bool:
    """Return True if the tool runs commands, so that its command has the roles.

    Some agents name the call after the program that a line of a shell starts: the tool of "python train.py" is python.
    """
    shell, role = _by_name(name[:NAME_HEAD])
    return shell or (not role and bool(name) and command.startswith(name) and command[len(name) :][:1] in ("", " "))


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
    return "none" if trust != "none" and _fetches(call.arguments) else trust


def _fetches(given: JSON) -> bool:
    """Return True if an argument has a URL in it, or is a command that fetches something."""
    values = given.values() if isinstance(given, (dict, Mapping)) else (given,)
    told = [value for value in values if isinstance(value, str) and any(map(value.__contains__, _FETCH_MARKS))]
    return any(_FETCHES.search(value, 0, COMMAND_HEAD) for value in told)


@lru_cache(maxsize=1024)
def _trust_by_name(name: str) -> str:
    if not _FOREIGN_PARTS.isdisjoint(_parts(name)):
        return "none"
    shell, role = _by_name(name)
    return "full" if shell or role not in ("", "change") else "names"


def _parts(name: str) -> list[str]:
    return [part.lower() for part in _NAME_PART.findall(name)]


@lru_cache(maxsize=1024)
def _by_name(name: str) -> tuple[bool, str]:
    """Return whether a tool of this name is a shell, and the role in it; "change" is an edit if it changes a file."""
    parts = _parts(name)
    found = [role for part in parts for role, names in _PARTS.items() if role != "file" and part in names]
    role = found[0] if found else ""
    if role == "change" and not _PARTS["file"].isdisjoint(parts):
        role = "edit"
    return not _SHELLS.isdisjoint(parts), role
