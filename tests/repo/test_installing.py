"""What is to be installed is on an index or in a clone; `tools/fresh_install.py` does it as a reader would."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reasonblocks._extras import EXTRAS, folder_of, pip_install
from reasonblocks.adapters import ADAPTERS
from reasonblocks_claude_agent import _gateway
from tests.repo.test_versions import PROJECTS, VERSIONS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
READ = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("examples/**/*.py")]
SOURCES = [*READ, *ROOT.glob("packages/*/src/**/*.py")]
TOOL = str(ROOT / "tools/fresh_install.py")


def extras(package: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(wanted) for name, wanted in PROJECTS[package]["optional-dependencies"].items()}


def test_errors_name_the_requirements_of_the_cores_extras() -> None:
    assert extras("core") == dict(EXTRAS)


def test_extras_are_sorted_so_that_one_is_easily_found() -> None:
    assert list(EXTRAS) == sorted(EXTRAS)


def test_the_gateways_error_names_the_requirements_of_its_extra() -> None:
    assert extras("claude-agent") == {"gateway": tuple(_gateway.EXTRA.values())}


@pytest.mark.parametrize("distribution", sorted({*ADAPTERS.values(), "reasonblocks-core"}))
def test_a_distribution_of_ours_is_in_the_folder_that_errors_name(distribution: str) -> None:
    folder = ROOT / folder_of(distribution)
    assert PROJECTS[folder.name]["name"] == distribution


@pytest.mark.parametrize("path", SOURCES, ids=[str(path.relative_to(ROOT)) for path in SOURCES])
def test_no_command_installs_ours_from_an_index(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"pip install [^\n`]*(?<![\w/-])reasonblocks-.*", text) == []


def test_the_readme_installs_the_core_alone_and_with_each_adapter() -> None:
    section = README.split("\n## Install\n")[1].split("\n## ")[0]
    adapters = [name for name, table in VERSIONS.items() if isinstance(table, dict)]
    wanted = {"./packages/core", *(f"./packages/core ./packages/{name}" for name in adapters)}
    assert set(re.findall(r"^pip install (\./.*?) +#", section, re.MULTILINE)) == wanted  # as noxfile.py finds them


def test_a_requirement_is_quoted_for_the_shell() -> None:
    assert pip_install(("httpx[http2]>=0.27", "certifi")) == "pip install 'httpx[http2]>=0.27' certifi"


# --- tools/fresh_install.py


def fresh(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A distribution that pip installs without any index: it builds itself."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "build_it"\nbackend-path = ["."]\n'
    )
    (folder / "build_it.py").write_text(BACKEND)
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


def test_an_install_is_one_line_with_what_it_took(package: Path) -> None:
    done = fresh(str(package))
    said = re.fullmatch(r"Python ([\d.]+), pip [\d.]+, (.*): \d+ s, (\d+) MB, 1 packages\n", done.stdout)
    assert said is not None, done
    assert said.group(1, 2) == (sys.version.split()[0], str(package))
    assert int(said.group(3)) >= 3


def test_an_install_that_takes_too_long_fails_and_says_so(package: Path) -> None:
    (package / "seconds").write_text("60")
    began = time.monotonic()
    done = fresh("--limit", "2", str(package))
    assert (done.returncode, done.stdout) == (1, "")
    assert re.search(r"tiny: pip [\d.]+ has not ended within 2 s$", done.stderr)
    assert time.monotonic() - began < 55


def test_an_install_that_fails_says_why(tmp_path: Path) -> None:
    done = fresh(str(tmp_path / "nothing"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing" in done.stderr.splitlines()[-1]


def test_what_is_run_sees_what_was_installed(package: Path, tmp_path: Path) -> None:
    script = tmp_path / "look.py"
    script.write_text("import tiny; raise SystemExit(f'weighs {len(tiny.WEIGHT)}')")
    done = fresh("--run", str(script), str(package))
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "weighs 3000000")
