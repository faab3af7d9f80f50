"""A WordPiece tokenizer that returns the same ids, in the same order, as the model's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from unicodedata import category, normalize

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""Special pieces: matched verbatim, case-sensitive, before any normalisation."""
UNKNOWN = "[UNK]"
WORD_CHARS = 100
"""Longer words are unknown: `max_input_chars_per_word` of the model's tokenizer.json."""
PIECE_CHARS = 18
"""Length of the longest piece in the shipped vocabulary; computing it would take a tenth of the loading time."""
USUAL = 0x1_0000
"""Size of the cache: the first plane of Unicode, 65,536 characters, at most 8 MB."""
INNER = "##"
"""Prefix of a piece that continues a word."""

_SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")
_CJK = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
"""Ranges of characters that are words of their own. (The gap between the fifth and sixth is the reference's.)"""


class Letters(dict[int, str]):
    """BERT's normalisation and pre-tokenization of each character, as a table for `str.translate` with a cache."""

    def __missing__(self, code: int) -> str:
        made = _letter(chr(code))
        if code < USUAL:
            self[code] = made
        return made


def _letter(char: str) -> str:
    kind = category(char)
    if char in "\t\n\r" or kind in ("Zs", "Zl", "Zp"):
        return " "
    if kind in ("Cc", "Cf", "Co", "Cs", "Mn") or char == "\ufffd":
        return ""
    if any(low <= ord(char) <= high for low, high in _CJK):
        return f" {char} "
    return "".join(f" {low} " if _is_mark(low) else low for low in char.lower())


def _is_mark(char: str) -> bool:
    return category(char)[0] == "P" or (char.isascii() and not char.isalnum())


class Tokenizer:
    """Turns texts into ids. Thread-safe."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._unknown = vocabulary[UNKNOWN]
        self._letters = Letters()

    def ids(self, text: str, pieces: Callable[[str], tuple[int, ...]] | None = None) -> list[int]:
        """Return the reference's ids without the markers of a sequence's ends. An unknown word has the id of "[UNK]".

        `pieces` replaces the tokenizer's method for words that are not a single piece, for example with a cached one.
        """
        vocabulary = self._vocabulary
        found: list[int] = []
        for part in _SPECIAL.split(text) if "[" in text else (text,):
            for word in (part,) if part in SPECIAL else self.words(part):
                whole = vocabulary.get(word)
                found += (pieces or self.pieces)(word) if whole is None else (whole,)
        return found

    def words(self, text: str) -> list[str]:
        """Return the words, lower-cased and without accents. Each punctuation mark and CJK character is a word."""
        return (text if text.isascii() else normalize("NFD", text)).translate(self._letters).split()

    def pieces(self, word: str) -> tuple[int, ...]:
        """Return the ids of the longest pieces from the left. Apostrophes split a contraction and are dropped."""
        if "'" in word:
            return tuple([piece for part in word.split("'") for piece in self.pieces(part)])
        if len(word) > WORD_CHARS:
            return (self._unknown,)
        found: list[int] = []
        start = 0
        while start < len(word):
            piece, start = self._longest_at(word, start)
            if piece is None:
                return (self._unknown,)
            found.append(piece)
        return tuple(found)

    def _longest_at(self, word: str, start: int) -> tuple[int | None, int]:
        """Return the longest piece that begins at this position, and its end."""
        prefix, find = INNER if start else "", self._vocabulary.get
        for end in range(min(len(word), start + PIECE_CHARS), start, -1):
            piece = find(prefix + word[start:end])
            if piece is not None:
                return piece, end
        return None, start
