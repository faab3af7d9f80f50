"""Which rows of the table a text stands for: the ids that the model's own WordPiece tokenizer gives, in its order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from unicodedata import category, normalize

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""Found in a text as they stand, in this case only, before anything else is done with it."""
UNKNOWN = "[UNK]"
WORD_CHARS = 100
"""A word of more characters is unknown as a whole: `max_input_chars_per_word` of the model's tokenizer.json."""
PIECE_CHARS = 18
"""No piece of the shipped vocabulary is longer; to look takes a tenth of the loading."""
USUAL = 0x1_0000
"""Where the first plane of Unicode ends: 65,536 characters, 8 MB at most."""
INNER = "##"
"""Begins a piece that goes on with a word."""

_SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")
_CJK = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
"""Each such character is a word. (The fifth range's end and the sixth's begin are as the reference has them.)"""


class Letters(dict[int, str]):
    """What BERT's normaliser and pre-tokenizer make of each character, for `str.translate`; the usual ones are kept."""

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
    """Any text to ids. Made once for a vocabulary; any number of threads may use it."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._unknown = vocabulary[UNKNOWN]
        self._letters = Letters()

    def ids(self, text: str, pieces: Callable[[str], tuple[int, ...]] | None = None) -> list[int]:
        """As the reference gives them without the marks of a sequence's ends; that of "[UNK]" is an unknown word's.

        `pieces` does in place of the tokenizer's own for words that are no piece themselves: from a memory, say.
        """
        vocabulary = self._vocabulary
        found: list[int] = []
        for part in _SPECIAL.split(text) if "[" in text else (text,):
            for word in (part,) if part in SPECIAL else self.words(part):
                whole = vocabulary.get(word)
                found += (pieces or self.pieces)(word) if whole is None else (whole,)
        return found

    def words(self, text: str) -> list[str]:
        """Lower-cased and without accents; each mark and each CJK character is a word."""
        return (text if text.isascii() else normalize("NFD", text)).translate(self._letters).split()

    def pieces(self, word: str) -> tuple[int, ...]:
        """The ids of the longest pieces from the left; of a contraction, those of its parts without the apostrophes."""
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
        """The longest piece that begins there, and where it ends."""
        prefix, find = INNER if start else "", self._vocabulary.get
        for end in range(min(len(word), start + PIECE_CHARS), start, -1):
            piece = find(prefix + word[start:end])
            if piece is not None:
                return piece, end
        return None, start
