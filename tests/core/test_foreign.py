"""The other product called `reasonblocks`, whose files overwrite ours, is refused."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from reasonblocks.foreign import find_foreign
from tests.foreign import INFO, PACKAGE, failed, install, install_over_ours, refusal

IMPORT = "import reasonblocks"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    return install(tmp_path)


@pytest.mark.parametrize("disabled", ["0", "1"])
def test_the_import_is_refused_with_the_commands_that_mend_it(theirs: Path, disabled: str) -> None:
    assert failed(IMPORT, theirs, REASONBLOCKS_DISABLED=disabled) == refusal(theirs)


def test_the_import_is_refused_again_and_as_an_import_error(theirs: Path) -> None:
    code = f"try:\n    {IMPORT}\nexcept ImportError:\n    {IMPORT}\n"
    assert failed(code, theirs) == refusal(theirs)


def test_the_import_is_refused_if_the_other_product_comes_later_on_the_path(theirs: Path) -> None:
    assert failed(IMPORT, PACKAGE.parent, theirs) == refusal(theirs)


def test_a_client_is_refused_if_the_path_has_the_other_product_since(theirs: Path) -> None:
    code = f"from reasonblocks import ReasonBlocks; import sys; sys.path.append({str(theirs)!r}); ReasonBlocks()"
    assert failed(code) == refusal(theirs)


@pytest.mark.parametrize(
    "code",
    [
        "from reasonblocks.client import ReasonBlocks; ReasonBlocks()",
        "import reasonblocks.adapters",
        "from reasonblocks_workbench.cli import main",
    ],
    ids=["client", "adapters", "commands"],
)
def test_what_is_still_ours_refuses_where_the_other_product_has_replaced_our_module(tmp_path: Path, code: str) -> None:
    assert failed(code, install_over_ours(tmp_path)) == refusal(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        INFO, "ReasonBlocks-2026.7.dist-info", "reasonblocks-1!0.4.0rc1+local.dist-info", "reasonblocks.egg-info",
        "reasonblocks-1.0-py3.10.egg-info", "reasonblocks-1.0-py3.10.egg",
    ],
)  # fmt: skip
def test_every_form_of_metadata_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert find_foreign() == str(tmp_path / name)


def test_an_egg_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    egg = tmp_path / "reasonblocks-1.0-py3.12.egg"
    monkeypatch.setattr(sys, "path", [str(egg)])
    assert find_foreign() == str(egg)


def test_metadata_in_a_zip_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(f"{INFO}/METADATA", "Name: reasonblocks\n")
    monkeypatch.setattr(sys, "path", [str(archive)])
    assert find_foreign() == str(archive)


@pytest.mark.parametrize(
    "name",
    [
        "reasonblocks", "reasonblocks_core-0.1.0.dist-info", "reasonblocks-core-0.1.0.dist-info",
        "reasonblocks_core.egg-info", "reasonblocks.core-0.1.0.egg-info", "reasonblocks2-1.0.dist-info",
        "reason_blocks-1.0.dist-info", "my-reasonblocks-1.0.dist-info", "reasonblocks-1.0.tar.gz",
        "~easonblocks-1.0.dist-info",
    ],
)  # fmt: skip
def test_ours_and_what_is_called_otherwise_is_not_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert find_foreign() is None


def test_what_cannot_be_read_on_the_path_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "no.zip"
    file.write_text("not an archive")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "missing"), str(file), "a\0b", None, 1, tmp_path])
    assert find_foreign() is None


def test_a_folder_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert find_foreign() is None
    (tmp_path / INFO).mkdir()
    assert find_foreign() is None


def test_the_look_needs_no_importlib_metadata() -> None:
    code = "import sys, reasonblocks; raise SystemExit(str('importlib.metadata' in sys.modules))"
    assert failed(code) == "False"
