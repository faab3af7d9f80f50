"""The other product called `reasonblocks`, whose files overwrite ours: its metadata, its files, and a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import reasonblocks

PACKAGE = Path(reasonblocks.__file__).parent
INFO = "reasonblocks-1.0.dist-info"
ADVICE = (
    "it is another product that overwrites our package: pip uninstall reasonblocks, then in a clone of ReasonBlocks: "
    "pip install --force-reinstall --no-deps ./packages/core"
)


def failed(code: str, *folders: Path, **environment: str) -> str:
    """Run the code with these folders first on the path, and return the last line of its error."""
    path = os.pathsep.join([*map(str, folders), str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return done.stderr.strip().rpartition("\n")[2]


def refusal(found: Path) -> str:
    """Return the last line of the error if the other product's metadata is in this folder."""
    named = f"ForeignDistribution: the distribution 'reasonblocks' is installed ({found / INFO}); {ADVICE}"
    return f"reasonblocks.exceptions.{named}"


def install(folder: Path) -> Path:
    """Return the folder with the other product's metadata."""
    (folder / INFO).mkdir()
    (folder / INFO / "METADATA").write_text("Metadata-Version: 2.1\nName: reasonblocks\nVersion: 1.0\n")
    return folder


def install_over_ours(folder: Path) -> Path:
    """Return the folder with the other product's metadata and module, and the rest of ours."""
    package = install(folder) / "reasonblocks"
    package.mkdir()
    for file in PACKAGE.iterdir():
        if file.name not in ("__init__.py", "__pycache__"):
            (package / file.name).symlink_to(file)
    (package / "__init__.py").write_text("class ReasonBlocks:\n    def __init__(self, api_key='theirs'): ...\n")
    return folder
