"""The shipped data is what the manifest says, and what the tool makes of the model's own files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from reasonblocks.backends.embed._static import DATA, read_table, table
from reasonblocks.exceptions import Unavailable

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "tools/build_embed.py"
SOURCE = "EMBED_MODEL_SOURCE"
"""Names the folder, zip or wheel with the model's own files, if there is one; doctor warns of variables like ours."""
MANIFEST = json.loads((DATA / "manifest.json").read_text(encoding="utf-8"))


def build(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), "--from", str(source), "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", sorted(MANIFEST["outputs"]))
def test_a_shipped_file_is_that_of_the_manifest(name: str) -> None:
    assert sha256((DATA / name).read_bytes()).hexdigest() == MANIFEST["outputs"][name]


def test_the_centre_beside_the_tool_is_that_of_the_manifest() -> None:
    centre = TOOL.with_name("embed_centre.json")
    assert sha256(centre.read_bytes()).hexdigest() == MANIFEST["inputs"][centre.name]


def test_the_table_has_the_manifests_shape_and_its_unknown_piece_no_meaning() -> None:
    assert table().rows.shape == (MANIFEST["rows"], MANIFEST["dim"])
    assert not table().rows[table().unknown].any()


@pytest.mark.parametrize("name", ["MODEL_CARD.md", "NOTICE"])
def test_model_and_licences_are_named_beside_the_data(name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    assert [part for part in ("potion-base-8M", "MIT", "bge-base-en-v1.5", "Apache-2.0") if part not in text] == []


@pytest.mark.skipif(SOURCE not in os.environ, reason=f"{SOURCE} names no source of the model")
def test_the_tool_makes_the_shipped_bytes_again(tmp_path: Path) -> None:
    done = build(Path(os.environ[SOURCE]), tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir() if path.read_bytes() != (DATA / path.name).read_bytes()] == []


def test_the_tool_refuses_files_that_are_not_the_models(tmp_path: Path) -> None:
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    assert "model.safetensors has the sha256 44136fa3" in build(tmp_path, tmp_path / "out").stderr


def test_the_tool_names_what_a_source_lacks(tmp_path: Path) -> None:
    assert "holds no model.safetensors" in build(tmp_path, tmp_path / "out").stderr


def test_missing_data_is_unavailable_and_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"vocabulary\.txt cannot be read.*install reasonblocks-core again"):
        read_table(tmp_path)


def test_a_damaged_table_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "vocabulary.txt").write_bytes((DATA / "vocabulary.txt").read_bytes())
    (tmp_path / "rows.int8").write_bytes((DATA / "rows.int8").read_bytes()[:-1])
    with pytest.raises(Unavailable, match="7559167 numbers"):
        read_table(tmp_path)
