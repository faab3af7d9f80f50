"""Decides which values of a result may be offered to the agent, and for which tool and argument (BEHAVIOUR 4b)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ..account.calls import NAME_HEAD, is_shell
from ..types import ToolCall
from ..util.folding import fold
from .acting import acts, hides_act, speaks, words_of
from .roles import trust_of

LONGEST_NAME = 60
"""Characters of the longest value."""

LISTS = frozenset("list lists ls dir tree glob find search look lookup grep locate enumerate explore".split())
"""Words of a tool's name, the first or the last one, that lists: others may go through what it lists."""
LOOKS = LISTS.union(
    "read get show view describe cat load inspect retrieve count check stat stats head tail examine info "
    "details detail status summary metadata schema".split()
)
"""Words, the first or the last one, of a tool that lists or reads, and so changes nothing."""
OPENS = frozenset("open file path document folder directory".split())
"""A tool also reads if all words of its name are among these: "open_file", not "open_account"."""
MOVES = frozenset("go goto walk enter step climb travel navigate".split())
"""First words of a tool that leads from place to place."""
SEARCHES = frozenset("search find look lookup grep glob locate".split())
"""Words of a tool for which a query is only words."""
LISTING_ROLES = frozenset({"read", "search", "list"})
"""The caller's roles of tools that list or read."""
LOOKING_ROLES = LISTING_ROLES.union({"test", "check"})
"""The caller's roles of tools that change nothing."""
NO_ARGUMENTS = frozenset(
    "action actions act do then what destination dest dst command commands cmd op operation operations method "
    "verb sql code script program shell argv args kwargs to cc bcc recipient recipients receiver payee "
    "beneficiary sender amount amounts sum price cost quantity qty currency iban card message messages msg "
    "body subject reply answer comment prompt prompts instruction instructions task goal plan url urls uri "
    "link links href website host hostname domain email mail phone permission permissions grant access role "
    "roles scope payload expression expr statement tool function callback webhook env option options choice "
    "button selection decision password token secret key".split()
)
"""Words of an argument that is an order, the receiver or the content of one, an address, or a secret."""
QUERIES = frozenset({"query", "q", "text", "input", "term", "terms", "keyword", "keywords", "question", "content"})
"""Arguments that are only words for a tool that searches, and may be anything for another."""
DOMAINS = frozenset("com net org io ru cn xyz info biz dev app ai co uk tk top onion gov edu".split())
"""Last parts of the name of a host."""

_VALUE = re.compile(r"(?:[\w#/][\w#~/.:+-]*|@[\w-]+/[\w.-]+)(?: [\w][\w.'’-]*){0,3}")
_ADDRESS = re.compile(r"(?:^|/)\.\.?(?:/|$)|//|:(?: |$)|^(?:javascript|vbscript|data|file|tel|ftp|sms|intent|s3|gs):")
"""A way out of a folder, a label, or an address of any scheme."""
_NUMBER = re.compile(r"\d+(?:[-/]\d+)*")
"""An id or a date of digits alone; with dots it is the address of a host."""
_AND = frozenset({"and", "then", "or"})
_NAMESPACE = re.compile(r"__|[./:]")


def may_show(call: ToolCall, tool_roles: Mapping[str, str]) -> bool:
    """Return True if lists in the tool's results may be gone through: it lists or reads what is the agent's own.

    Of a tool that leads from place to place, only the tool itself may take a member.
    """
    if trust_of(call, tool_roles) == "none":
        return False
    role, name = tool_roles.get(call.name), call.name[:NAME_HEAD]
    return role in LISTING_ROLES if role else looks(name, LOOKS) or _moves(name)


def may_take(call: ToolCall, source: str, tool_roles: Mapping[str, str]) -> bool:
    """Return True if a call may take, and be offered, members of lists that the tool `source` shows.

    It lists, reads, checks, or leads from place to place: of a tool of which nothing is known, nothing is offered. And
    it is that tool itself, or the other one lists, or reads a thing of the same kind, as "get_users" and "get_user" do.
    """
    name = call.name[:NAME_HEAD]
    if trust_of(call, tool_roles) == "none" or not (changes_nothing(call, tool_roles) or _moves(name)):
        return False
    shows = tool_roles.get(source) in LISTING_ROLES or is_shell(source) or looks(source, LISTS)
    return source == call.name or shows or _same_thing(source, name)


def changes_nothing(call: ToolCall, tool_roles: Mapping[str, str]) -> bool:
    """Return True if the tool lists, reads or checks: by the caller's role, unless its name acts, or by its name."""
    role, name = tool_roles.get(call.name), call.name[:NAME_HEAD]
    if role:
        return role in LOOKING_ROLES and not is_shell(name) and not acts(name, noun=True)
    return looks(name, LOOKS)


@lru_cache(maxsize=1_024)
def looks(name: str, words: frozenset[str]) -> bool:
    """Return True if the tool's own name, without that of its server, begins or ends with one of these words."""
    own = _own_words(name)
    if not own or not _AND.isdisjoint(own) or acts(name, noun=True) or is_shell(name):
        return False
    return not words.isdisjoint((own[0], own[-1])) or ("open" in own and "read" in words and OPENS.issuperset(own))


def _own_words(name: str) -> list[str]:
    return [word for word in words_of(_NAMESPACE.split(name)[-1]) if word.isalpha()]


@lru_cache(maxsize=1_024)
def _moves(name: str) -> bool:
    return not MOVES.isdisjoint(_own_words(name)[:1]) and not acts(name)


def _same_thing(source: str, name: str) -> bool:
    """Return True if both tools are about a thing of one name; "tables" are of "table"."""
    one, other = ({word.rstrip("s") for word in _own_words(tool)} - LOOKS for tool in (source, name))
    return not one.isdisjoint(other)


def may_fill(tool: str, arguments: Iterable[str]) -> bool:
    """Return True if all arguments of a call are names or places of things."""
    return all(_may_fill(tool[:NAME_HEAD], argument) for argument in arguments)


def _may_fill(tool: str, argument: str) -> bool:
    words = words_of(argument)
    if not QUERIES.isdisjoint(words) and SEARCHES.isdisjoint(words_of(tool)):
        return False
    return NO_ARGUMENTS.isdisjoint(words) and not acts(argument, noun=words[-1:] in (["id"], ["ids"]))


@lru_cache(maxsize=4_096)
def may_offer(value: str) -> bool:
    """Return True for a path, an id or a name: no sentence, no markup, no address, no flag, and nothing that acts.

    Letters of other scripts cannot be judged: such a value is none.
    """
    if not 1 < len(value) <= LONGEST_NAME or not value.isprintable() or _VALUE.fullmatch(value) is None:
        return False
    plain = fold(value)
    if not plain.isascii() or not (any(map(str.isalpha, value)) or _NUMBER.fullmatch(value)):
        return False
    if _ADDRESS.search(plain) or _is_host(plain):
        return False
    return not acts(value) and not speaks(value)


def _is_host(value: str) -> bool:
    """Return True for the name of a host, or what begins with one."""
    name, _, last = value.partition("/")[0].partition(":")[0].rpartition(".")
    return value.startswith("www.") or (bool(name) and last in DOMAINS)


def alike(value: str, words: int) -> bool:
    """Return True for a name of at most so many words, that has not even a part of a word that acts in it."""
    return count_of_words(value) <= words and not hides_act(value)


def count_of_words(value: str) -> int:
    """Return the number of words of a value; a number is none."""
    return sum(map(str.isalpha, words_of(value)))
