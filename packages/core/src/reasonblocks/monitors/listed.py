"""Finds the lists in a result, by their form alone: what is on one line, below each other, or under the same key."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .offers import LONGEST_NAME

HEAD = 2_000
"""Characters of a result in which lists are looked for."""
MOST_WORDS = 4
"""Words of the longest quoted member."""
LONGEST_LIST = 16
"""Members of the longest list: of a longer one, any three are no advice."""
LONGEST_LINE = 400
"""Characters of the longest line that is read."""
SHORT = 1_000
"""Characters of the longest result in which lists within a line are looked for: a longer one is a file or a log."""
SHORTEST_ID = 6
"""Digits of the shortest number that is an id and not a quantity, a year or a line number."""

_NAME = re.compile(r"[\w#@~/.][\w.#@/:+~-]*")
_QUOTED = re.compile(r"[\w#@(][\w .#@/:+&'’(),–-]*")
_CODE = frozenset('(){}=<>\\"')
"""Characters that no line with a list in it has: such a line is code."""
_NUMBER = re.compile(r"[-+]?[\d.,:%]+")
_STRING = re.compile(r"""'([^'\n]*)'|"([^"\n]*)\"""")
_ARRAY = re.compile(r"\[([^\[\]{}()]{3,800})\]")
_TUPLE = re.compile(r"""\(["']([^"'()]{1,40})["'],""")
_LABELLED = re.compile(r"(?:^|(?<=\s))(\S{1,40}): (\S{2,60}?)[.;]?(?=\s*$|\. )", re.MULTILINE)
_BULLET = re.compile(r"(?:[-*•+]|\d{1,3}[.)])")
_ENTRY = re.compile(r"[-dl][-rwxsStT]{8}[-x]$")
_COLONS = frozenset((": ", ":"))
_NO_NAMES = frozenset(
    "true false null none nan yes no and or the a an is are was were not ok error errors warning total usage options "
    "of in on to for with from by at as it this that if else try except return import def class pass self . ..".split()
)


def lists_in(text: str, *, quoted: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield each list of two or more names with its label, which lists of the same kind share.

    With `quoted`, members in quotes may have blanks in them. Of a long text, such as a file, only data and the lines
    below each other are read: what else looks like a list there is code or prose.
    """
    short, text = len(text) <= SHORT, text[:HEAD]
    start = text.lstrip()[:1]
    if start and start in "[{":
        yield from _data(text, quoted=quoted)
        return
    if short and "[" in text:
        yield from _arrays(text, quoted=quoted)
    yield from _lines(text.split("\n"), inline=short)


def labelled_names(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name after each label, as in "Doors: attic.": a list of one, if longer lists have the same label."""
    if len(text) <= SHORT:
        for label, name in _LABELLED.findall(text):
            if _is_name(name):
                yield label, name


def _data(text: str, *, quoted: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield arrays, first items of tuples, and values of the same key, of JSON or of a Python literal."""
    if "(" in text:
        yield from _checked("(", _TUPLE.findall(text))
    elif "{" not in text:
        yield from _arrays(text, quoted=quoted)
    else:
        for key, found in _values(text.split('"' if '"' in text else "'")).items():
            if len(found) > 1 and all(map(_is_name, found[:2])):
                yield from _checked(key, found)


def _values(parts: list[str]) -> dict[str, list[str]]:
    """Return the texts under each key of JSON, or of a Python literal, that was split at its quotes."""
    values: dict[str, list[str]] = {}
    for at in range(2, len(parts) - 2, 2):
        if parts[at] in _COLONS:
            values.setdefault(parts[at - 1], []).append(parts[at + 1])
    return values


def _arrays(text: str, *, quoted: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the members of each "[a, b]": between commas, or in quotes."""
    for found in _ARRAY.finditer(text):
        inner = found[1].strip()
        if not inner:
            continue
        in_quotes = inner[0] in "'\""
        if in_quotes:
            parts = [one or other for one, other in _STRING.findall(inner)]
        else:
            parts = [part.strip() for part in inner.split(",")]
        members = [part for part in parts if _is_name(part) or (quoted and _is_phrase(part))]
        if 2 <= len(members) <= LONGEST_LIST and (in_quotes or len(members) == len(parts)):
            yield "[", _distinct(members)


def _is_name(word: str) -> bool:
    if not 1 < len(word) <= LONGEST_NAME:
        return False
    if word[0] in "_." or word.lower() in _NO_NAMES:
        return False
    if word.isdigit():
        return len(word) >= SHORTEST_ID
    return _NAME.fullmatch(word) is not None and _NUMBER.fullmatch(word) is None


def _is_phrase(text: str) -> bool:
    if not 1 < len(text) <= LONGEST_NAME or text.count(" ") >= MOST_WORDS:
        return False
    return _QUOTED.fullmatch(text) is not None and any(map(str.isalpha, text))


def _distinct(members: list[str]) -> list[str]:
    return list(dict.fromkeys(members))


def _checked(label: str, found: list[str]) -> Iterator[tuple[str, list[str]]]:
    if len(found) < 2:
        return
    members = [member for member in _distinct(found) if _is_name(member)]
    if 2 <= len(members) <= LONGEST_LIST:
        yield label, members


def _lines(lines: list[str], *, inline: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield runs of lines of one form, and lists within a line."""
    run: list[str] = []
    form = ""
    for line in [*lines, ""]:
        bare = line.strip()
        now, name = _form(line) if 0 < len(bare) <= LONGEST_LINE else ("", "")
        if now != form or not now:
            if len(run) > 2 or (len(run) == 2 and (form[0] in "-l" or len(lines) <= 3)):
                yield from _checked(form, run)
            run, form = [], now
        if now:
            run.append(name)
        if inline and ", " in bare and len(bare) <= LONGEST_LINE:
            for sentence in bare.split(". "):
                if ", " in sentence and _CODE.isdisjoint(sentence):
                    yield from _inline(sentence)


def _form(line: str) -> tuple[str, str]:
    """Return the form of a line and its name: "- a.py", "O12: ...", "a.py", or an entry of `ls -l`; or two blanks."""
    indent = len(line) - len(line.lstrip())
    word, _, rest = line.strip().partition(" ")
    if not rest:
        word, tab, _ = word.partition("\t")
        return f"{'t' if tab else 's'}{indent}", _file(word)
    if word[-1] == ":":
        return (f"k{indent}", _file(word[:-1])) if not word[:-1].isalpha() else ("", "")
    if _BULLET.fullmatch(word):
        name, _, more = rest.strip().partition(" ")
        return (f"-{indent}", name.rstrip(":,;")) if not more or name[-1] in ":,;" else ("", "")
    if _ENTRY.match(word):
        return "l", rest.rpartition(" ")[2]
    if word.isupper() and word.isalpha():  # "FAILED tests/test_a.py::test_b - ..."
        return f"p{word}", rest.strip().partition(" ")[0]
    return "", ""


def _file(word: str) -> str:
    """Return the file of "a.py:12:import"; another word is returned unchanged."""
    name, _, rest = word.partition(":")
    return name if rest[:1].isdigit() else word


def _inline(line: str) -> Iterator[tuple[str, list[str]]]:
    """Yield "Doors: attic, pantry." and, without a label, three or more names between commas."""
    label, colon, after = line.rpartition(": ")
    parts = (after if colon else line).rstrip(".;)]").split(", ")
    if not 2 <= len(parts) <= LONGEST_LIST or (not colon and len(parts) < 3):
        return
    if not colon:
        parts[0] = parts[0].rpartition(" ")[2].lstrip("([")
    last = parts[-1]
    for joint in ("and ", "or "):
        last = last.removeprefix(joint)
    parts[-1] = last
    members = [part.strip("'\"`") for part in parts]
    if all(map(_is_name, members)):
        yield label.rpartition(" ")[2] or ",", _distinct(members)
