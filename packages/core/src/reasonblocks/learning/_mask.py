"""What of a run's text may stand in a lesson: no secret, no person, no id, nothing that passes for an instruction."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ..render import sanitise
from ..text import collapse
from ..types import JSON

__all__ = ["hidden", "plain_words", "private_words", "short"]

MASK = "#"
_EMAIL = re.compile(r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_SECRET = re.compile(
    r"(?i)\b(?:api[_-]?key|access[_-]?key|secret|token|password|passwd|pwd|bearer|authorization|credential)s?"
    r"[\"']?\s*[:=]?\s*[\"']?[^\s\"',;}]{4,200}"
)
_DIGITS = re.compile(r"\+?\(?\d[\d\s().-]{7,24}\d")
"""A telephone or card number, also when it is written in groups."""
_WITH_DIGIT = re.compile(r"[\w@$%+-]*\d[\w@$%+-]*(?:[.:,/][\w-]*\d[\w-]*)*")
_NAMES = re.compile(r"\b[A-Z][a-z]+(?: (?:[A-Z]\. )?[A-Z][a-z]+)+\b")
"""Words in a row that begin with a capital: people, places, titles. Lessons are found by what is left."""
_LONG = re.compile(r"\b(?=\w*[A-Z])(?=\w*[a-z])[\w+/=-]{32,}\b|\b[0-9a-fA-F]{24,}\b")
_PERSON_KEY = (
    r"(?:\w*(?:first|last|full|user|customer|passenger|guest|sender|recipient|contact)_?name|name|e?mail|"
    r"phone\w*|address\d?|street|city|state|province|country|zip\w*|postal\w*|dob|birth\w*|iban|ssn|passport\w*)"
)
_PERSON = re.compile(rf"(?i)([\"']{_PERSON_KEY}[\"']\s*:\s*)([\"'])(?:(?!\2)[^\n]){{0,120}}\2?")
_NAME_KEY = re.compile(r"(?i)[\"']?(?:first|last)_?name[\"']?\s*[:=]\s*[\"']([^\W\d_][\w' -]{1,40})[\"']")
_ORDERS = (
    (re.compile(r"(?i)\bmust\b"), "has to"),
    (re.compile(r"(?i)\boverrid(?:e|es|ing|den)\b"), "replace"),
    (re.compile(r"(?i)\b(?:do not|don't|never) mention\b"), "leave out"),
    (re.compile(r"(?i)\bignore (?:all|any|the|previous|prior|above)\b[^.]{0,60}"), MASK),
)
"""What no guidance of ours says: in the words of a result it would read as an order."""
MOST_NAMES = 32


def private_words(texts: Collection[str]) -> frozenset[str]:
    """Names that these texts give as those of a person."""
    found = [word for text in texts for given in _NAME_KEY.findall(text) for word in given.split()]
    return frozenset(word.lower() for word in found[:MOST_NAMES] if len(word) > 1)


def hidden(text: str, private: Collection[str] = ()) -> str:
    """The text without mail addresses, secrets, personal fields, names of two words, and words that hold a digit.

    Each is a "#". A first name alone is known only where `private` holds it.
    """
    for pattern in (_EMAIL, _SECRET, _LONG, _DIGITS):
        text = pattern.sub(MASK, text)
    text = _PERSON.sub(rf"\1\2{MASK}\2", text)
    text = _NAMES.sub(MASK, _WITH_DIGIT.sub(MASK, text))
    for word in sorted(private):
        text = re.sub(rf"(?i)(?<![^\W_]){re.escape(word)}(?![^\W_])", MASK, text)
    return sanitise(plain_words(text))


def plain_words(text: str) -> str:
    """The text without words that order."""
    for pattern, instead in _ORDERS:
        text = pattern.sub(instead, text)
    return text


def short(text: str, given: Mapping[str, JSON], private: Collection[str], limit: int) -> str:
    """What kind of error a result announces: its first words, without quotes, ids and what the call was given."""
    line = collapse(text[: 4 * limit])
    for value in sorted(filter(_tells, map(str, _texts(given))), key=len, reverse=True):
        line = line.replace(value, MASK)
    line = re.sub(r"([\"'])(?:(?!\1).){1,200}\1", MASK, line)
    line = re.sub(r"\(\s*#?\s*\)|\[type=.*", "", hidden(line, private))
    line = re.sub(r"\s+([.,;!?])", r"\1", collapse(re.sub(r"#(?:[\s,.:-]*#)+", MASK, line)))
    if len(line) <= limit:
        return line.strip(" .,:;")
    return line[:limit].rpartition(" ")[0].strip(" .,:;")


def _tells(value: str) -> bool:
    return 2 < len(value) <= 200


def _texts(given: Mapping[str, JSON]) -> list[str]:
    found: list[str] = []
    for value in given.values():
        found += [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
    return found
