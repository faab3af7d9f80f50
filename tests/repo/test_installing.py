"""What is to be installed is on an index or in a clone; `tools/fresh_install.py` does it as a reader would."""

from __future__ import annotations

import platform
import re
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from reasonblocks.adapters import ADAPTERS
from reasonblocks.util.extras import EXTRAS, folder_of, pip_install
from reasonblocks_claude_agent.gateway import _proxy
from reasonblocks_server.commands._opened import POSTGRES
from reasonblocks_workbench.cli._main import PLUGINS as COMMANDS
from reasonblocks_workbench.extras import EXTRAS as WORKBENCH_EXTRAS
from tests.repo.test_versions import PROJECTS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
READ = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("examples/**/*.py")]
SOURCES = [*READ, *ROOT.glob("packages/*/src/**/*.py")]
TOOL = str(ROOT / "tools/fresh_install.py")


def extras(package: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(wanted) for name, wanted in PROJECTS[package]["optional-dependencies"].items()}


@pytest.mark.parametrize(("package", "known"), [("core", EXTRAS), ("workbench", WORKBENCH_EXTRAS)])
def test_errors_name_the_requirements_of_the_extras(package: str, known: Mapping[str, tuple[str, ...]]) -> None:
    assert extras(package) == dict(known)
    assert list(known) == sorted(known)


def test_the_gateways_error_names_the_requirements_of_its_extra() -> None:
    assert extras("claude-agent") == {"gateway": tuple(_proxy.EXTRA.values())}


def test_the_error_of_a_missing_driver_names_the_requirements_of_its_extra() -> None:
    assert extras("server")["postgres"] == POSTGRES


@pytest.mark.parametrize("distribution", sorted({*ADAPTERS.values(), *COMMANDS.values(), "reasonblocks-core"}))
def test_a_distribution_of_ours_is_in_the_folder_that_errors_name(distribution: str) -> None:
    folder = ROOT / folder_of(distribution)
    assert PROJECTS[folder.name]["name"] == distribution


@pytest.mark.parametrize("path", SOURCES, ids=[str(path.relative_to(ROOT)) for path in SOURCES])
def test_no_command_installs_ours_from_an_index(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"pip install [^\n`]*(?<![\w/-])reasonblocks-.*", text) == []


def ours_in(package: str) -> list[str]:
    """A package after those of ours that it requires, as pip needs them from a clone."""
    names = [re.split(r"[\[=]", line)[0] for line in PROJECTS[package]["dependencies"]]
    needed = [name.removeprefix("reasonblocks-") for name in names if name.startswith("reasonblocks-")]
    return [*dict.fromkeys(name for one in needed for name in ours_in(one)), package]


def test_the_readme_installs_each_package_with_those_of_ours_that_it_requires() -> None:
    section = README.split("\n## Install\n")[1].split("\n## ")[0]
    wanted = {" ".join(f"./packages/{name}" for name in ours_in(package)) for package in PROJECTS}
    assert set(re.findall(r"^pip install (\./.*?) +#", section, re.MULTILINE)) == wanted  # as noxfile.py finds them


def test_a_requirement_is_quoted_for_the_shell() -> None:
    assert pip_install(("httpx[http2]>=0.27", "certifi")) == "pip install 'httpx[http2]>=0.27' certifi"


# --- tools/fresh_install.py


def fresh(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A distribution that pip installs without any index: it builds itself."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "build_it"\nbackend-path = ["."]\n'
    )
    (folder / "build_it.py").write_text(BACKEND)
    (folder / "look.py").write_text("import tiny; raise SystemExit(f'weighs {len(tiny.WEIGHT)}')")
    return folder


BACKEND = """
import os, time, zipfile
time.sleep(float(open("seconds").read()) if os.path.exists("seconds") else 0)

def build_wheel(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(os.path.join(folder, "tiny-1-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("tiny.py", "WEIGHT = '" + "x" * 3_000_000 + "'")
        wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n")
        wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    return "tiny-1-py3-none-any.whl"
"""


@pytest.fixture(scope="module")
def done(package: Path) -> subprocess.CompletedProcess[str]:
    """Installed, and then looked at by a script that fails."""
    return fresh("--run", str(package / "look.py"), str(package))


def test_an_install_is_one_line_with_what_it_took(done: subprocess.CompletedProcess[str], package: Path) -> None:
    said = re.fullmatch(r"Python ([\d.]+), pip [\d.]+, (.*): \d+ s, (\d+) MB, 1 packages\n", done.stdout)
    assert said is not None, done
    assert said.group(1, 2) == (platform.python_version(), str(package))
    assert int(said.group(3)) >= 3


def test_what_is_run_sees_what_was_installed(done: subprocess.CompletedProcess[str]) -> None:
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "weighs 3000000")


def test_an_install_that_takes_too_long_fails_and_says_so(package: Path) -> None:
    failed = fresh("--limit", "0.1", str(package))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert re.search(r"pip [\d.]+ has not ended within 0\.1 s$", failed.stderr)


def test_an_install_that_fails_says_why(tmp_path: Path) -> None:
    failed = fresh(str(tmp_path / "nothing"))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "nothing" in failed.stderr.splitlines()[-1]


STARTS_ANOTHER = """
import pathlib, subprocess, sys
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path(sys.argv[1]).write_text(str(other.pid))
other.wait()
"""


def test_nothing_goes_on_after_what_takes_too_long(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    tool = runpy.run_path(TOOL)
    with pytest.raises(tool["Failed"], match="has not ended within 2 s"):
        tool["call"]("a build", [sys.executable, "-c", STARTS_ANOTHER, str(file)], 2)
    assert not is_running(int(file.read_text()))


def is_running(process: int) -> bool:
    """One that was killed and waits for its parent is not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return state.stdout.strip()[:1] not in ("", "Z")
