"""`reasonblocks doctor`: what is installed and in use, and what is wrong with it."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from reasonblocks import LocalStore, Pattern
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.types import Codebase, Finding
from reasonblocks_workbench.cli import _doctor
from reasonblocks_workbench.cli._doctor import examine
from tests.workbench.cli.conftest import Command


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts a distribution's metadata where the import system finds it."""

    def distribution(name: str, version: str, *requires: str, entry: str = "") -> None:
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        needs = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        if entry:
            (folder / "entry_points.txt").write_text(f"[reasonblocks.adapters]\n{entry}\n")

    monkeypatch.syspath_prepend(str(tmp_path))
    return distribution


def test_versions_are_said() -> None:
    assert examine({}).versions["python"] == platform.python_version()


def test_an_adapter_is_found_by_its_entry_point(install: Callable[..., None]) -> None:
    install("somewhere", "3.1")
    install(
        "reasonblocks-some", "0.1", "reasonblocks-core==0.1", "somewhere[all]>=3", entry="some = reasonblocks_some:f"
    )
    (found,) = [one for one in examine({}).adapters if one.method == "some"]
    assert (found.distribution, found.version, found.framework, found.framework_version) == (
        "reasonblocks-some", "0.1", "somewhere", "3.1",
    )  # fmt: skip


def test_an_adapter_without_its_framework_is_told(install: Callable[..., None]) -> None:
    install("reasonblocks-some", "0.1", "nowhere-at-all", entry="some = reasonblocks_some:f")
    (found,) = [one for one in examine({}).adapters if one.method == "some"]
    assert (found.framework, found.framework_version) == ("nowhere-at-all", None)


def test_adapters_of_another_version_are_warned_of(install: Callable[..., None]) -> None:
    install("reasonblocks-core", "0.2")
    install("reasonblocks-langchain", "0.1", entry="middleware = reasonblocks_langchain:middleware")
    told = "in one clone of ReasonBlocks: pip install ./packages/core ./packages/langchain"
    assert [line for line in examine({}).warnings if line.endswith(told)] != []


def test_an_adapter_of_somebody_else_has_a_version_of_its_own(install: Callable[..., None]) -> None:
    install("reasonblocks-core", "0.2")
    install("acme-adapter", "3.1", entry="acme = acme_adapter:acme")
    assert [line for line in examine({}).warnings if "acme" in line] == []


def test_what_is_not_installed_comes_with_the_line_that_installs_it(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_doctor, "_version", lambda name: None)
    said = command("doctor").out
    assert "not installed: pip install numpy" in said
    assert "not installed (optional): pip install 'httpx[http2]>=0.27' 'qdrant-client>=1.12'" in said


def test_a_server_without_the_library_is_a_problem(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:9")
    done = command("doctor")
    assert (done.code, "QDRANT_URL needs qdrant-client: pip install " in done.err) == (1, True)


def test_backends_in_use_are_named() -> None:
    assert set(examine({}).backends) == {
        "evaluator", "pattern store", "embedder", "default embedder", "profiles", "codebase memory",
    }  # fmt: skip


def test_a_key_is_never_shown(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_API_KEY", "rb_live_hidden")
    done = command("doctor")
    assert "set, 14 characters" in done.out
    assert "hidden" not in done.out + done.err


def test_a_url_is_shown_without_what_is_secret_in_it() -> None:
    shown = examine({"QDRANT_URL": "https://me:secret@host:6333/x?token=secret"}).environment["QDRANT_URL"]
    assert shown == "https://host:6333/x (the rest is hidden)"


@pytest.mark.parametrize("name", ["REASONBLOCKS_BASE_URL", "QDRANT_URL"])
def test_a_url_that_is_none_is_not_shown(name: str) -> None:
    assert examine({name: "http://[bad"}).environment[name] == "set, 11 characters that are no URL"


def test_a_base_url_that_is_no_url_is_said_in_one_line(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_BASE_URL", "http://[bad")
    done = command("doctor")
    assert (done.code, len(done.err.splitlines())) == (1, 1)


def test_variables_that_are_not_set_are_not_shown() -> None:
    assert examine({"REASONBLOCKS_HOME": ""}).environment == {}


def test_an_unknown_variable_gets_the_nearest_name() -> None:
    assert "did you mean 'REASONBLOCKS_STRICT'" in examine({"REASONBLOCKS_STRIKT": "1"}).warnings[0]


def test_switched_off_steering_is_warned_of() -> None:
    assert "steering is off" in examine({"REASONBLOCKS_DISABLED": "1"}).warnings[0]


def test_settings_that_the_client_refuses_are_a_problem(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_BASE_URL", "ftp://127.0.0.1")
    done = command("doctor")
    assert done.code == 1
    assert "base_url" in done.err.lower()


def test_a_sound_installation_is_ok(command: Command) -> None:
    assert command("doctor").code == 0


def test_json_is_one_object(command: Command) -> None:
    found = json.loads(command("doctor", "--json").out)
    assert list(found) == ["versions", "adapters", "backends", "server", "environment", "warnings", "problems"]


def test_a_file_of_patterns_is_counted(tmp_path: Path) -> None:
    home = {"REASONBLOCKS_HOME": str(tmp_path)}
    before = examine(home).backends["pattern store"]
    LocalStore(tmp_path / "patterns.db", patterns=[Pattern(id="a", tier="e3")]).close()
    after = examine(home).backends["pattern store"]
    assert before.endswith("(made when a pattern is added)")
    assert after.endswith("patterns.db, 1 pattern")


def test_a_file_of_patterns_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "patterns.db").write_bytes(b"garbage" * 100)
    assert "move it away" in examine({"REASONBLOCKS_HOME": str(tmp_path)}).problems[0]


def test_the_findings_of_a_file_are_counted(tmp_path: Path) -> None:
    home = {"REASONBLOCKS_HOME": str(tmp_path)}
    before = examine(home).backends["codebase memory"]
    finding = Finding(content="x", finding_id="a")
    with closing(LocalFindings(tmp_path / "patterns.db")) as findings:
        for name in ("acme/search", "acme/ui"):
            findings.put(Codebase(org_id="default", codebase_id=name), [finding])
    after = examine(home).backends["codebase memory"]
    assert before.endswith("patterns.db (made when a finding is stored)")
    assert after.endswith("patterns.db, 2 findings about 2 codebases, of org 'default'")


def test_a_server_of_findings_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("httpx")
    found = examine({"REASONBLOCKS_BASE_URL": "http://127.0.0.1:9", "REASONBLOCKS_API_KEY": "rb_live_hidden"})
    assert found.backends["codebase memory"].endswith(".HttpFindings")


@pytest.mark.parametrize("library", ["detect-secrets", "mcp"])
def test_the_libraries_of_codebase_memory_come_with_their_install_command(
    command: Command, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setattr(_doctor, "_version", lambda name: None)
    (line,) = [line for line in command("doctor").out.splitlines() if line.split()[:1] == [library]]
    assert "not installed (optional): pip install 'detect-secrets>=1.5'" in line
