"""Texts of every kind that an embedder may meet, made from a seed: the same on every machine and every Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from random import Random
from typing import TypeVar

T = TypeVar("T")

TEXTS = 2_400
SEED = 8
WORDS = (
    "a the I we it is was not should would check look file test error failed because function returns value None list "
    "index user flight order search find result nothing again different approach retry command install package missing "
    "directory path import module class method argument exception traceback timeout server request response query "
    "table column database join total average compute number date reservation customer policy refund cannot maybe "
    "however therefore although repository commit branch merge conflict resolve understanding unbelievably misreading "
    "antidisestablishmentarianism refactored deserialisation tokenizer hyperparameter idempotency xylophone zugzwang"
).split()
CONTRACTIONS = (
    "couldn't", "I'm", "it's", "we'll", "they've", "o'clock", "rock'n'roll", "'quoted'", "''twice''", "y'all’s",
)  # fmt: skip
PARTS = ("get", "user", "ID", "http", "Parse", "v2", "tmp", "X", "max", "len", "utf8", "async", "__init__", "db", "7z")
MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
RANGES = (
    (0xA1, 0xFF), (0x100, 0x17F), (0x391, 0x3A1), (0x3A3, 0x3C9), (0x410, 0x44F), (0x5D0, 0x5EA), (0x621, 0x64A),
    (0x905, 0x939), (0xE01, 0xE30), (0x1E00, 0x1EFF), (0x2010, 0x2027), (0x2030, 0x205E), (0x2070, 0x2071),
    (0x20A0, 0x20BE), (0x2100, 0x214F), (0x2160, 0x2188), (0x2190, 0x21FF), (0x2200, 0x22FF), (0x2460, 0x24FF),
    (0x2500, 0x25FF), (0x2600, 0x26FF), (0x2700, 0x27BF), (0x3001, 0x3011), (0x3041, 0x3096), (0x30A1, 0x30FA),
    (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0xF900, 0xFA2D), (0xFB00, 0xFB06), (0xFF01, 0xFF5E), (0x1D400, 0x1D454),
    (0x1F300, 0x1F5FF), (0x1F600, 0x1F64F), (0x20000, 0x20100), (0x2F800, 0x2F900),
)  # fmt: skip
"""What every Python and the reference know alike: the reference's tables are those of Unicode 8."""
ODD = (
    "\x00\x01\x07\x08\x0b\x0c\x1b\x1f\x7f\x85\x9f\xa0\xad\u0300\u0301\u0308\u0327\u0345\u1680\u2000\u2003\u2009\u200b"
    "\u200d\u200e\u2028\u2029\u202e\u202f\u205f\u2060\u2066\u3000\ufe0f\ufeff\ufffd\ue000\uf8ff\U000e0041\U0010fffd"
    "İıẞßΣςŉǅǄ\u212a\u2126"
)
SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "[MASK]", "[PAD]", "[mask]", "[ UNK ]", "[[CLS]]", "a[SEP]b")
ENDS = (" ", "  ", "\n", "\t", "\r\n", ", ", ". ", "", "-", "; ")


class Dice:
    """Draws whose results no version of Python may change: `random()` alone is promised to stay."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def below(self, end: int) -> int:
        return int(self._random.random() * end)

    def one(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def some(self, make: Callable[[Dice], str], most: int, ends: Sequence[str] = ENDS) -> str:
        return "".join(make(self) + self.one(ends) for _ in range(1 + self.below(most)))


def word(dice: Dice) -> str:
    chosen = dice.one(WORDS)
    return dice.one((chosen, chosen, chosen, chosen.upper(), chosen.capitalize(), chosen + dice.one(MARKS)))


def contraction(dice: Dice) -> str:
    return dice.one((dice.one(CONTRACTIONS), dice.one(CONTRACTIONS).replace("'", "’"), word(dice)))


def identifier(dice: Dice) -> str:
    return dice.one(("_", "", "-", ".")).join(dice.one(PARTS) for _ in range(1 + dice.below(4)))


def number(dice: Dice) -> str:
    value = dice.below(10 ** (1 + dice.below(12)))
    return dice.one(
        (str(value), f"{value:,}", f"{value / 7:.3f}", f"{value:x}", f"0x{value:X}", f"-{value}%", f"{value}th")
    )


def path(dice: Dice) -> str:
    return dice.one(("/", "./", "~/", "C:\\", "")) + dice.one("/\\").join(
        identifier(dice) for _ in range(1 + dice.below(5))
    )


def code(dice: Dice) -> str:
    name, other = identifier(dice), identifier(dice)
    lines = (
        f"def {name}({other}=None):",
        f"if {name} != {other}: return [{number(dice)}]",
        f"{name}['{other}'] += 1",
        f'grep -rn "{name}" . | head -{dice.below(99)}',
        f"SELECT {name} FROM {other};",
        f"`{name}` <b>{other}</b>",
    )
    return dice.one(lines)


def an_object(dice: Dice) -> str:
    value = {identifier(dice): dice.one((dice.below(999), word(dice), None, [number(dice)], {"k": path(dice)}))}
    return json.dumps(value, indent=dice.one((None, 2)))


def foreign(dice: Dice) -> str:
    first, last = dice.one(RANGES)
    return "".join(chr(first + dice.below(last - first + 1)) for _ in range(1 + dice.below(6)))


def anything(dice: Dice) -> str:
    first, last = dice.one(RANGES)
    odd = (
        dice.one(ODD),
        chr(first + dice.below(last - first + 1)),
        dice.one(MARKS),
        chr(dice.below(128)),
        dice.one("aeiouXYZ"),
    )
    return dice.one(odd)


def long(dice: Dice) -> str:
    length = dice.one((95, 99, 100, 101, 105, 1_000))
    return (dice.one((identifier(dice), "a", "ab1", foreign(dice), dice.one(WORDS))) * length)[:length]


def special(dice: Dice) -> str:
    return dice.one((dice.one(SPECIAL), word(dice), foreign(dice)))


def mixed(dice: Dice) -> str:
    return dice.one((word, contraction, identifier, number, path, code, an_object, foreign, anything, long, special))(
        dice
    )


def texts(count: int = TEXTS, seed: int = SEED) -> list[str]:
    """The texts; an eighth of them each of words, contractions, code, objects, foreign, odd, special and mixed."""
    dice = Dice(seed)
    kinds = (word, contraction, code, an_object, foreign, anything, special, mixed)
    return [dice.some(kinds[at % len(kinds)], 24) for at in range(count)]


def mark(values: Sequence[int]) -> str:
    """8 characters that stand for a sequence of ids."""
    return blake2b(",".join(map(str, values)).encode(), digest_size=4).hexdigest()


def mark_of_all(given: Sequence[str]) -> str:
    """What says whether the texts are still those that the fixture was made of."""
    return blake2b("\0\0".join(given).encode(), digest_size=16).hexdigest()
