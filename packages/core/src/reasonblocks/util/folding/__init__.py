"""Folds a text to what a reader may take it for: look-alike letters, marks and entities as plain lower case."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache

from ._lookalikes import LOOKALIKES

__all__ = ["fold", "origins", "places", "visible"]

CACHED = 65_536
"""Code points whose form is cached, at most: more than a process meets, unless somebody sends it all of Unicode."""
NESTED = 4
"""Times that an entity's ampersand may itself be an entity, at most."""
_MARKS = frozenset({"Mn", "Me", "Cc", "Cf"})
_INVISIBLE = frozenset("\u2028\u2029\u115f\u1160\u3164\uffa0\u034f\u2800\u17b4\u17b5").union(
    map(chr, range(0xFE00, 0xFE10)), map(chr, range(0xE0100, 0xE01F0))
)
"""Separators, fillers and variation selectors: no category distinguishes them from letters and marks."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ENTITY = r"&(?:amp;?){0,4}(?:#[0-9]{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[a-zA-Z]{2,31};|[lg]t)"
_entity = re.compile(_ENTITY)
_unit = re.compile(rf"{_ENTITY}|.", re.DOTALL)
_block = re.compile(rf"(?:{_ENTITY}|.){{1,1024}}", re.DOTALL)


def visible(text: str) -> str:
    """Remove control, format (bidi, zero-width, tags), surrogate and private-use characters, and invisible fillers."""
    return _CONTROL.sub("", text) if text.isascii() else text.translate(_VISIBLE)


def fold(text: str) -> str:
    """Return the folded text; a plain one is only put into lower case."""
    if "&" in text:
        text = _entity.sub(lambda entity: _decoded(entity[0]), text)
    return text.lower() if _is_plain(text) else text.translate(_FOLDED)


def _is_plain(text: str) -> bool:
    return text.isascii() and not _CONTROL.search(text)


def origins(text: str) -> Sequence[int]:
    """Return, for each character of the folded text and for its end, its position in the original text."""
    if "&" not in text and _is_plain(text):
        return range(len(text) + 1)
    found: list[int] = []
    for unit in _unit.finditer(text):
        found += [unit.start()] * len(fold(unit[0]))
    return [*found, len(text)]


def places(text: str, wanted: Sequence[int]) -> list[int]:
    """Return the positions in the text of ascending positions in its folded form, without a list of all of them."""
    found: list[int] = []
    read = 0
    for block in _block.finditer(text):
        if len(found) == len(wanted):
            break
        length, is_last = len(fold(block[0])), block.end() == len(text)
        if wanted[len(found)] < read + length or is_last:
            of = origins(block[0])
            while len(found) < len(wanted) and (wanted[len(found)] < read + length or is_last):
                found.append(block.start() + of[wanted[len(found)] - read])
        read += length
    return found


@lru_cache(maxsize=1_024)
def _decoded(text: str) -> str:
    from html import unescape  # it loads two thousand names, and few texts contain an entity

    for _ in range(NESTED + 1):
        text = unescape(text)
    return visible(text)


class _Visible(dict[int, int | None]):
    """A table for `str.translate`: None removes a character."""

    def __missing__(self, code: int) -> int | None:
        char = chr(code)
        kept = char in "\n\t" or (unicodedata.category(char)[0] != "C" and char not in _INVISIBLE)
        value = code if kept else None
        if len(self) >= CACHED:
            self.clear()
        self[code] = value
        return value


class _Folded(dict[int, str]):
    """A table for `str.translate`: each character's folded form."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        looks = _lookalikes()
        chars = char if code in looks else unicodedata.normalize("NFKD", char)
        kept = (part for part in chars if part in "\n\t" or unicodedata.category(part) not in _MARKS)
        value = "".join(looks.get(ord(part)) or part.lower() for part in kept)
        if len(self) >= CACHED:
            self.clear()
        self[code] = value
        return value


@cache
def _lookalikes() -> dict[int, str]:
    return {int(code, 16): plain for plain, codes in LOOKALIKES.items() for code in codes.split()}


_VISIBLE, _FOLDED = _Visible(), _Folded()
