"""Masks a run's text for a lesson: removes secrets, people, ids, and words that read as an instruction."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache

from ..render.sanitise import sanitise
from ..types import JSON
from ..util.text import collapse
from . import MASK
from . import without_secrets as without_secrets_alone
from ._people import known_names, without_names

_EMAIL = re.compile(r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_DIGITS = re.compile(r"\+?\(?\d[\d\s().-]{7,24}\d")
"""A telephone or card number, also when it is written in groups."""
_WITH_DIGIT = re.compile(r"(?<![\w@$%+-])[\w@$%+-]*\d[\w@$%+-]*(?:[.:,/][\w-]*\d[\w-]*)*")
_HEX = re.compile(r"\b[0-9a-fA-F]{24,}\b")
_MIXED = re.compile(r"\b(?=\w*[A-Z])(?=\w*[a-z])[\w+/=-]{32,}\b")
_ORDERS = (
    (re.compile(r"(?i)\bmust\b"), "has to"),
    (re.compile(r"(?i)\boverrid(?:e|es|ing|den)\b"), "replace"),
    (re.compile(r"(?i)\b(?:do not|don't|never) mention\b"), "leave out"),
    (re.compile(r"(?i)\bignore (?:all|any|the|previous|prior|above)\b[^.]{0,60}"), MASK),
)
"""Words that our guidance never uses: quoted from a result, they would read as an order."""
MAX_NAMES = 32
MAX_PASSES = 4
"""The most times that a text is masked; removing one part may let a rule match another."""
LONGEST = 8_000
"""The most characters of a text that are masked; the rest is dropped."""


def private_words(texts: Collection[str]) -> frozenset[str]:
    """Return the words that these texts show to be a person's names, in lower case."""
    found = dict.fromkeys(word.lower() for text in texts for word in known_names(text))
    return frozenset([*found][:MAX_NAMES])


def hidden(text: str, private: Collection[str] = ()) -> str:
    """Replace secrets, people, mail addresses, accounts and words with a digit by "#".

    A first name alone is recognised only if `private` contains it or a title or a greeting precedes it. Masked text is
    unchanged. Text is masked before it is cut; everything after `LONGEST` characters is dropped.
    """
    text = whole_words(text, LONGEST)
    for _ in range(MAX_PASSES):
        before, text = text, _mask_once(text, private)
        if text == before:
            break
    return text


def _mask_once(text: str, private: Collection[str]) -> str:
    text = _unnamed(text)
    for pattern in (_MIXED, _HEX, _DIGITS, _WITH_DIGIT):
        text = pattern.sub(MASK, text)
    return sanitise(plain_words(_without_private(text, private)))


def _unnamed(text: str) -> str:
    """Mask secrets, mail addresses and people, and keep the text's lines."""
    return without_names(_EMAIL.sub(MASK, without_secrets(text)))


def _without_private(text: str, private: Collection[str]) -> str:
    for word in sorted(private):
        text = re.sub(rf"(?i)(?<![^\W_]){re.escape(word)}(?![^\W_])", MASK, text)
    return text


def without_secrets(text: str) -> str:
    """Mask secrets, accounts and addresses, and keep everything else, even numbers."""
    return without_secrets_alone(text, accounts=True, addresses=True)


@lru_cache(maxsize=4096)
def label(text: str) -> str:
    """Return the name of a tool, a program or an argument, without secrets and mail addresses."""
    return _EMAIL.sub(MASK, without_secrets(text if len(text) <= LONGEST else whole_words(text, LONGEST) or MASK))


@lru_cache(maxsize=4096)
def run_label(text: str, private: frozenset[str] = frozenset()) -> str:
    """Return a run's id without secrets and people; numbers and hashes stay, because they distinguish runs."""
    return _without_private(_MIXED.sub(MASK, without_names(label(text))), private)


def plain_words(text: str) -> str:
    """Return the text without words that give an order."""
    for pattern, replacement in _ORDERS:
        text = pattern.sub(replacement, text)
    return text


def whole_words(text: str, limit: int) -> str:
    """Cut a text to at most `limit` characters after a whole word: half of a secret could not be recognised."""
    if len(text) <= limit:
        return text
    return text[: max(text.rfind(" ", 0, limit), text.rfind("\n", 0, limit), 0)]


def short(text: str, arguments: Mapping[str, JSON], private: Collection[str], limit: int) -> str:
    """Return the first words of an error, without quotes, ids and the values of the call's arguments."""
    line = collapse(_unnamed(whole_words(text, 8 * limit)))
    for value in sorted(filter(_is_specific, _values(arguments)), key=len, reverse=True):
        line = line.replace(value, MASK)
    line = hidden(line, private)
    line = re.sub(r"([\"'])(?:(?!\1).){1,200}\1", MASK, line)
    line = re.sub(r"\(\s*#?\s*\)|\[type=.*", "", line)
    line = re.sub(r"\s+([.,;!?])", r"\1", collapse(re.sub(r"#(?:[\s,.:-]*#)+", MASK, line)))
    if len(line) <= limit:
        return line.strip(" .,:;")
    return line[:limit].rpartition(" ")[0].strip(" .,:;")


def _is_specific(value: str) -> bool:
    return 2 < len(value) <= 200


def _values(arguments: Mapping[str, JSON]) -> set[str]:
    """Return the texts of a call's arguments, as they are and with their secrets masked."""
    found: set[str] = set()
    for value in arguments.values():
        found.update(item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str))
    return found | {_unnamed(text) for text in found if _is_specific(text)}
