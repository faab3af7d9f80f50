"""Writes the token ids of the generated texts as the `tokenizers` library gives them: what our tokenizer is held to.

Runs in an environment with `tokenizers`; takes the tokenizer.json that `tools/build_embed.py` takes.
"""

from __future__ import annotations

import argparse
import json
import sys
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.core.embed.generated import mark, mark_of_all, texts  # noqa: E402

FIXTURE = ROOT / "tests/core/embed/data/token_ids.json"
WHOLE = 64
"""Of so many texts all ids are kept, to see what differs; of the others a hash."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path, metavar="tokenizer.json")
    content = parser.parse_args().tokenizer.read_bytes()
    reference = import_module("tokenizers").Tokenizer.from_str(content.decode())
    given = texts()
    ids = [one.ids for one in reference.encode_batch(given, add_special_tokens=False)]
    made = {
        "reference": f"tokenizers {version('tokenizers')}",
        "tokenizer.json": sha256(content).hexdigest(),
        "texts": mark_of_all(given),
        "whole": ids[:WHOLE],
        "marks": " ".join(map(mark, ids)),
    }
    FIXTURE.parent.mkdir(parents=True, exist_ok=True)
    FIXTURE.write_text(json.dumps(made) + "\n", encoding="utf-8")
    sys.stdout.write(f"{FIXTURE}: {len(ids)} texts, {sum(map(len, ids)):,} ids\n")


if __name__ == "__main__":
    main()
