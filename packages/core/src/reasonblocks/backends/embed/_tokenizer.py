"""Which rows of the table a text stands for: the ids that the model's own WordPiece tokenizer gives, in its order."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["SPECIAL", "WORD_CHARS", "Letters", "Pieces", "Tokenizer"]

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""Found in a text as they stand, in this case only, before anything else is done with it."""
UNKNOWN = "[UNK]"
WORD_CHARS = 100
"""A word of more characters is unknown as a whole: `max_input_chars_per_word` of the model's tokenizer.json."""
INNER = "##"
"""Begins a piece that goes on with a word."""

_SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")
_CJK = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
"""Each such character is a word. (The fifth range's end and the sixth's begin are as the reference has them.)"""


class Letters(dict[int, str]):
    """What BERT's normaliser and pre-tokenizer make of each character: made once each, for `str.translate`."""

    def __missing__(self, code: int) -> str:
        made = self[code] = _letter(chr(code))
        return made


def _letter(char: str) -> str:
    category = unicodedata.category(char)
    if char in "\t\n\r" or category in ("Zs", "Zl", "Zp"):
        return " "
    if category in ("Cc", "Cf", "Co", "Cs", "Mn") or char == "\ufffd":
        return ""
    if any(low <= ord(char) <= high for low, high in _CJK):
        return f" {char} "
    return "".join(f" {low} " if _is_mark(low) else low for low in char.lower())


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "P" or (char.isascii() and not char.isalnum())


class Pieces:
    """The longest pieces that a vocabulary has, from the left; none for a word that is not made of them."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self.ids = vocabulary
        self._longest = max(map(len, vocabulary), default=0)

    def of(self, word: str) -> tuple[int, ...] | None:
        """The ids of one word without marks; None: it is unknown."""
        if len(word) > WORD_CHARS:
            return None
        found, start = [], 0
        while start < len(word):
            at = self._next(word, start)
            if at is None:
                return None
            piece, start = at
            found.append(piece)
        return tuple(found)

    def known(self, words: Iterable[str]) -> tuple[int, ...]:
        """The ids of several words, without the unknown ones."""
        return tuple([one for word in words for one in self.of(word) or ()])

    def _next(self, word: str, start: int) -> tuple[int, int] | None:
        prefix = INNER if start else ""
        for end in range(min(len(word), start + self._longest), start, -1):
            piece = self.ids.get(prefix + word[start:end])
            if piece is not None:
                return piece, end
        return None


class Tokenizer:
    """Any text to ids. Made once for a vocabulary; any number of threads may use it."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self.pieces = Pieces(vocabulary)
        self._unknown = vocabulary[UNKNOWN]
        self._letters = Letters()

    def ids(self, text: str) -> list[int]:
        """As the reference gives them without the marks of a sequence's ends; 1 stands for an unknown word."""
        return list(self._ids(text, self.pieces.of))

    def known(self, text: str, of: Callable[[str], tuple[int, ...] | None]) -> list[int]:
        """Without the unknown ones, which have no meaning; `of` looks words up, from a memory for instance."""
        return [one for one in self._ids(text, of) if one != self._unknown]

    def _ids(self, text: str, of: Callable[[str], tuple[int, ...] | None]) -> Iterator[int]:
        vocabulary = self.pieces.ids
        for part in _SPECIAL.split(text) if "[" in text else (text,):
            if part in SPECIAL:
                yield vocabulary[part]
                continue
            for word in self.words(part):
                whole_word = vocabulary.get(word)
                found = of(word) if whole_word is None else (whole_word,)
                yield from (self._unknown,) if found is None else found

    def words(self, text: str) -> list[str]:
        """Lower-cased and without accents; each mark and each CJK character is a word."""
        if not text.isascii():
            text = unicodedata.normalize("NFD", text)
        return text.translate(self._letters).split()
