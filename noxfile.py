"""The project's commands: `./dev NAME [ARGS]` runs the session NAME."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree

import nox
from nox.command import CommandFailed
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).parent
CONSTRAINTS = ROOT / "constraints.txt"
REPORTS = ROOT / ".nox" / "reports"
PARITY_FILES = ROOT / ".nox" / "parity-files"
MATRIX_PARITY_FILES = ROOT / ".nox" / "parity-files-matrix"
PACKAGES = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
VERSIONS = nox.project.load_toml(ROOT / "versions.toml")
PYTHONS: list[str] = VERSIONS["python"]
ADAPTERS = {name: table for name, table in VERSIONS.items() if isinstance(table, dict)}
OUTSIDE = sorted(path.parent.name for path in ROOT.glob("examples/*/pyproject.toml"))
"""Adapters as somebody outside would write them: distributions of their own under examples/."""
EVERY_COMMIT: dict[str, list[str]] = {name: table.get("every_commit", []) for name, table in ADAPTERS.items()}
"""What `tests` gives to pytest beside its own arguments; the matrix runs everything."""
TYPED = ("packages", "tests", "examples", "benchmarks", "tools")
CORE = ("-e", "packages/core[cli,learn,testing]")

# A warning is an error in what the tests start, too, and an error of ours is raised instead of logged.
TEST_ENV = {"PYTHONWARNINGS": "error", "REASONBLOCKS_STRICT": "1"}
# Extras that no session installs: gigabytes, and models that would be downloaded.
NOT_INSTALLED = {"fastembed", "model2vec", "sentence-transformers"}
# Where pip and uv look for the versions that a package is built with.
PINNED_BUILD = {"PIP_BUILD_CONSTRAINT": str(CONSTRAINTS), "UV_BUILD_CONSTRAINT": str(CONSTRAINTS)}

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.sessions = ["tests"]


SMOKE_SCRIPTS = {
    "core": "tools/bare_core.py",
    "langchain": "examples/demo.py",
    "openai-agents": "examples/openai_agents_run.py",
    "claude-agent": "examples/claude_agent_run.py",
}
"""A script for each line of the README's section "Install", by the line's last package; only that line is installed."""


# --- what the sessions share


def group(*names: str) -> tuple[str, ...]:
    return nox.project.dependency_groups(nox.project.load_toml(ROOT / "pyproject.toml"), *names)


def adapter_package(name: str) -> tuple[str, str]:
    return ("-e", f"packages/{name}")


def adapter_group(name: str) -> tuple[str, ...]:
    return group(f"test-{name}")


def outside_group(example: str) -> str:
    return f"test-{example.replace('_', '-')}"


def adapter_tests(name: str) -> str:
    return f"tests/{name.replace('-', '_')}"


def install(session: nox.Session, *wanted: str) -> None:
    """Installs the newest versions that resolve."""
    try:
        session.install(*wanted)
    except CommandFailed:
        if session.venv_backend != "uv":
            raise
        session.warn("uv could not install this; trying again with pip")
        pip = (sys.executable, "-m", "pip", "--python", session.virtualenv.location, "install", "--quiet")
        session.run_install(*pip, *wanted, external=True)


def install_pinned(session: nox.Session, *wanted: str) -> None:
    """Installs the versions of constraints.txt."""
    session.env.update(PINNED_BUILD)
    install(session, "--constraint", str(CONSTRAINTS), *wanted)


def all_adapter_groups() -> list[str]:
    return [requirement for name in ADAPTERS for requirement in adapter_group(name)]


def everything() -> list[str]:
    return [*CORE, *(part for name in ADAPTERS for part in adapter_package(name))]


def run_pytest(
    session: nox.Session,
    *paths: str,
    report: str,
    parity: Path = PARITY_FILES,
    python: tuple[str, ...] = ("python",),
    got: str = "constraints.txt",
    env: Mapping[str, str] | None = None,
) -> None:
    """Runs pytest with the session's arguments; a report is left for `closing_line` and `frameworks`.

    In the folder `parity` adapters leave what they decide, and the parity sessions look for it. `got` is the versions
    under test, for the report; `env` is what they are told besides.
    """
    told = (f"--junitxml={REPORTS / report}.xml", "-o", f"junit_suite_name={got}")
    command = (*python, "-m", "pytest", *told, *paths, *session.posargs)
    nothing_chosen = [5] if session.posargs else []
    variables = {**TEST_ENV, "REASONBLOCKS_PARITY": str(parity), **(env or {})}
    session.run(*command, env=variables, success_codes=[0, *nothing_chosen], external=python != ("python",))


def run_all(
    session: nox.Session,
    tested: Iterable[str],
    checks: Iterable[str] = (),
    only: Mapping[str, list[str]] = MappingProxyType({}),
) -> None:
    """Queues `checks` and, with the session's arguments, the `tested` sessions; then the closing line.

    `only` has further arguments of some sessions.
    """
    shutil.rmtree(REPORTS, ignore_errors=True)
    tested = list(tested)
    for name in checks:
        session.notify(name, posargs=[])
    for name in tested:
        session.notify(name, posargs=[*only.get(name, ()), *session.posargs])
    session.notify("closing_line", posargs=tested)


# --- see it work


@nox.session(reuse_venv=True)
def demo(session: nox.Session) -> None:
    """A scripted agent on a broken repository, plain and steered; with FILES: your own recorded runs replayed."""
    install_pinned(session, "-e", "packages/core[cli]", *adapter_package("langchain"))
    session.chdir(os.environ.get("DEV_CWD", "."))
    session.run("python", str(ROOT / "examples/demo.py"), *session.posargs)


@nox.session(reuse_venv=True)
def bench(session: nox.Session) -> None:
    """The scripts under benchmarks/, or only those that the arguments name; other arguments go to the scripts."""
    install_pinned(session, *everything(), *group("bench"))
    scripts = {path.stem: path for path in sorted(ROOT.glob("benchmarks/[!_]*.py"))}
    named = [arg for arg in session.posargs if arg in scripts]
    options = [arg for arg in session.posargs if arg not in scripts]
    for name in named or scripts:
        session.run("python", str(scripts[name]), *options)


# --- test it on this Python


@nox.session(python=False)
def tests(session: nox.Session) -> None:
    """All that follows, and a closing line; arguments go to pytest."""
    adapters = {f"adapters({name})": only for name, only in EVERY_COMMIT.items()}
    others = [f"outside({name})" for name in OUTSIDE]
    tested = ["core", *adapters, "parity", "examples", *others, "repo", "wheel"]
    run_all(session, tested=tested, checks=["lint", "types", "layers"], only=adapters)


@nox.session(reuse_venv=True)
def lint(session: nox.Session) -> None:
    """Style: ruff's rules and ruff's format."""
    install_pinned(session, *group("lint"))
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")


@nox.session(reuse_venv=True)
def types(session: nox.Session) -> None:
    """mypy, strict, on packages and tests."""
    install_pinned(session, *everything(), *group("types", "examples", "bench"), *all_adapter_groups())
    elsewhere = f"^examples/({'|'.join(OUTSIDE)})/"  # where their frameworks are: in the sessions `outside`
    folders = [folder for folder in TYPED if any(ROOT.glob(f"{folder}/**/*.py"))]
    session.run("mypy", "--exclude", elsewhere, *(session.posargs or folders))


@nox.session(reuse_venv=True)
def layers(session: nox.Session) -> None:
    """The floors: who may import whom."""
    install_pinned(session, *everything(), *group("layers"))
    session.run("lint-imports", "--no-logo", *session.posargs)


@nox.session(reuse_venv=True)
def core(session: nox.Session) -> None:
    """The core, with no framework installed."""
    install_pinned(session, *CORE, *group("test-core"))
    run_pytest(session, "tests/core", "tests/golden", report="core")


@nox.session(reuse_venv=True)
@nox.parametrize("adapter", list(ADAPTERS), ids=list(ADAPTERS))
def adapters(session: nox.Session, adapter: str) -> None:
    """An adapter, on a real agent of its framework."""
    install_pinned(session, *CORE, *adapter_package(adapter), *adapter_group(adapter))
    run_pytest(session, adapter_tests(adapter), report=f"adapters({adapter})")


@nox.session(reuse_venv=True)
def parity(session: nox.Session) -> None:
    """Every adapter decides as the core does: compares what `adapters` left, entry by entry."""
    install_pinned(session, *CORE, *group("test"))
    run_pytest(session, "tests/parity", report="parity")


@nox.session(reuse_venv=True)
def examples(session: nox.Session) -> None:
    """The examples, run as they are read: loops on the providers' own clients, and agents of the frameworks."""
    install_pinned(session, *CORE, *adapter_package("openai-agents"), *group("examples"))
    run_pytest(session, "tests/examples", report="examples")


@nox.session(reuse_venv=True)
@nox.parametrize("example", OUTSIDE, ids=OUTSIDE)
def outside(session: nox.Session, example: str) -> None:
    """An adapter written from outside, in an environment of its own: its types, its tests, the whole suite."""
    project = nox.project.load_toml(ROOT / "examples" / example / "pyproject.toml")["project"]
    supported = SpecifierSet(project["requires-python"])
    if not supported.contains(platform.python_version()):
        session.skip(f"{project['name']} needs Python {supported}, this is {platform.python_version()}")
    oldest = next(python for python in PYTHONS if supported.contains(python))
    install_pinned(session, *CORE, "-e", f"examples/{example}", *group(outside_group(example)))
    session.run("mypy", "--python-version", oldest, f"examples/{example}")
    run_pytest(session, f"examples/{example}", report=f"outside({example})")


@nox.session(reuse_venv=True)
def repo(session: nox.Session) -> None:
    """The repository's own rules, and what needs scikit-learn."""
    install_pinned(session, *everything(), *group("repo"))
    run_pytest(session, "tests/repo", "tests/calibrate", report="repo")


# --- wheels


def build_wheels(session: nox.Session, folder: Path) -> list[str]:
    install_pinned(session, *group("build"))
    for package in PACKAGES:
        with session.chdir(package):
            build = ("python", "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder))
            session.run(*build, silent=True)
    return sorted(str(path) for path in folder.glob("*.whl"))


@nox.session(reuse_venv=True)
def wheels(session: nox.Session) -> None:
    """The wheels of all packages, into dist/."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    for wheel_file in build_wheels(session, ROOT / "dist"):
        print(Path(wheel_file).relative_to(ROOT))


WHERE_INSTALLED = """
import importlib, pathlib, sys
for name in sys.argv[1:]:
    path = pathlib.Path(importlib.import_module(name).__file__)
    assert "site-packages" in path.parts, path
"""


@nox.session(reuse_venv=True)
def wheel(session: nox.Session) -> None:
    """Test the README's installs, each in a fresh environment; then the built wheels, without access to the source."""
    install_as_readers_do(session)
    with tempfile.TemporaryDirectory() as name:
        there = Path(name).resolve()
        built = build_wheels(session, there / "dist")
        session.run(sys.executable, "-m", "venv", str(there / "env"), external=True)
        python = (str(there / "env/bin/python"), "-I")
        pip = (*python, "-m", "pip", "install", "--quiet", "--constraint", str(CONSTRAINTS))
        session.run(*pip, *built, external=True)
        with session.chdir(there):
            imports = ["reasonblocks", *(f"reasonblocks_{adapter.replace('-', '_')}" for adapter in ADAPTERS)]
            session.run(*python, "-W", "error", "-c", WHERE_INSTALLED, *imports, external=True, log=False)
            session.run(*pip, *group("test"), *all_adapter_groups(), external=True)
            run_pytest(session, *smoke_tests(there), "-k", SMOKE, report="wheel", python=python)


def install_as_readers_do(session: nox.Session) -> None:
    """Run the commands of the README's section "Install" with the pip that the session's Python bundles."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Install\n")[1].split("\n## ")[0]
    commands = re.findall(r"^pip install (\./.*?) +#", section, re.MULTILINE)
    if {folders.rpartition("/")[2] for folders in commands} != set(SMOKE_SCRIPTS):
        session.error(f"the README installs {commands}, SMOKE_SCRIPTS has {list(SMOKE_SCRIPTS)}")
    for folders in commands:
        script = SMOKE_SCRIPTS[folders.rpartition("/")[2]]
        session.run("python", "tools/fresh_install.py", "--run", script, *folders.split())


SMOKE = "smoke or stays_clean or second_run"
"""What shows that a wheel holds what it needs; `adapters` runs the rest on the same code."""


def smoke_tests(there: Path) -> list[str]:
    """Copies what tests an installed wheel to the folder `there`; gives what pytest is to run of it."""
    folders = [adapter_tests(name) for name, only in EVERY_COMMIT.items() if not only]
    of_a_checkout = shutil.ignore_patterns("__pycache__", "test_parity.py")
    files = [str(path.relative_to(ROOT)) for path in ROOT.glob("tests/core/test_smoke*.py")]
    for folder in [*folders, "tests/golden"]:
        shutil.copytree(ROOT / folder, there / folder, ignore=of_a_checkout)
    (there / "tests/core").mkdir()
    for file in [*files, "pyproject.toml"]:
        shutil.copy(ROOT / file, there / file)
    return [*folders, *files]


# --- test it on every Python and framework

CELLS = [(name, framework) for name in ADAPTERS for framework in ("oldest", "newest")]
CELL_IDS = ["-".join(cell) for cell in CELLS]
ENDS = [PYTHONS[0], PYTHONS[-1]]


@nox.session(python=False)
def matrix(session: nox.Session) -> None:
    """Test the README's installs and the core on every Python, each adapter on the oldest and newest one and framework.

    Nothing is pinned.

    Every cell of an adapter leaves a file of what it decides, and one core is compared with all of them at the end: so
    the oldest framework decides as the newest does, and one Python as another.
    """
    shutil.rmtree(MATRIX_PARITY_FILES, ignore_errors=True)
    cores = [f"matrix-core-{python}" for python in PYTHONS]
    adapters = [f"matrix-adapter-{python}({cell})" for python in ENDS for cell in CELL_IDS]
    installs = [f"matrix-install-{python}" for python in PYTHONS]
    run_all(session, tested=[*cores, *adapters, "matrix-parity"], checks=installs)


@nox.session(name="matrix-install", python=PYTHONS)
def matrix_install(session: nox.Session) -> None:
    """Test the README's installs on one Python."""
    check_python(session)
    install_as_readers_do(session)


@nox.session(name="matrix-core", python=PYTHONS)
def matrix_core(session: nox.Session) -> None:
    """The core on one Python."""
    install(session, *CORE, *group("test-core"))
    got = check_python(session)
    run_pytest(session, "tests/core", "tests/golden", report=f"matrix-core-{session.python}", got=got)


@nox.session(name="matrix-adapter", python=ENDS)
@nox.parametrize(("adapter", "framework"), CELLS, ids=CELL_IDS)
def matrix_adapter(session: nox.Session, adapter: str, framework: str) -> None:
    """An adapter on one Python with one version of its framework."""
    supported = ADAPTERS[adapter]
    wanted = f"=={supported['oldest']}" if framework == "oldest" else f"<{supported['below']}"
    install(session, *CORE, *adapter_package(adapter), *adapter_group(adapter), supported["distribution"] + wanted)
    got = f"{check_python(session)}, {check_framework(session, supported, framework)}"
    cell = f"{session.python}({adapter}-{framework})"
    parity = MATRIX_PARITY_FILES / cell
    env = {"REASONBLOCKS_CLAUDE_WHOLE": "1"}  # what every commit leaves out
    run_pytest(session, adapter_tests(adapter), report=f"matrix-adapter-{cell}", parity=parity, got=got, env=env)


@nox.session(name="matrix-parity", reuse_venv=True)
def matrix_parity(session: nox.Session) -> None:
    """Every cell of an adapter decides as the core does: compares what the `matrix-adapter` sessions left."""
    install_pinned(session, *CORE, *group("test"))
    run_pytest(session, "tests/parity", report="matrix-parity", parity=MATRIX_PARITY_FILES)


def check_python(session: nox.Session) -> str:
    """What was got, in words."""
    got = printed(session, "import platform; print(platform.python_version())")
    print(f"got Python {got}")
    if not got.startswith(f"{session.python}."):
        session.error(f"asked for Python {session.python}, got {got}")
    return f"Python {got}"


def check_framework(session: nox.Session, supported: dict[str, Any], framework: str) -> str:
    """What was got, in words."""
    name = supported["distribution"]
    got = printed(session, f"from importlib.metadata import version; print(version({name!r}))")
    print(f"got {name} {got}")
    if framework == "oldest" and got != supported["oldest"]:
        session.error(f"asked for {name} {supported['oldest']}, got {got}")
    line = supported.get("newest_line", {}).get(session.python)
    if framework == "newest" and line and not got.startswith(f"{line}."):
        session.error(f"asked for {name} {line}, got {got}")
    if framework == "newest" and not line and Version(got) < Version(supported["newest"]):
        session.error(f"asked for {name} {supported['newest']} or newer, got {got}")
    return f"{name} {got}"


def printed(session: nox.Session, program: str) -> str:
    output = session.run("python", "-c", program, silent=True, log=False)
    return str(output).strip()


# --- keep it


@nox.session(reuse_venv=True)
def frameworks(session: nox.Session) -> None:
    """Writes docs/frameworks.md, from what the last matrix has found."""
    install_pinned(session, *CORE, *group("test"))
    session.run("python", "tools/frameworks.py", *session.posargs)


@nox.session(reuse_venv=True)
def shipped_calibration(session: nox.Session) -> None:
    """Fits the calibration that the core ships, to the files of recorded runs that the arguments name."""
    install_pinned(session, "-e", "packages/core[calibrate]")
    session.run("python", "tools/shipped_calibration.py", *session.posargs)


@nox.session(reuse_venv=True)
def lock(session: nox.Session) -> None:
    """Writes constraints.txt: what packages and sessions need, on every Python; --upgrade for newer versions."""
    install(session, "uv")
    wanted = Path(session.create_tmp()) / "wanted.txt"
    wanted.write_text("\n".join(outside_requirements()) + "\n", encoding="utf-8")
    how = ("--universal", "--python-version", PYTHONS[0], "--no-header", "--no-annotate", "--quiet")
    session.run("uv", "pip", "compile", *how, *session.posargs, str(wanted), "--output-file", str(CONSTRAINTS))


def outside_requirements() -> list[str]:
    """Everything that is installed in any session, without our own packages."""
    projects = [nox.project.load_toml(package / "pyproject.toml")["project"] for package in PACKAGES]
    wanted = set(group("dev", "build", "repo", "lint", "types", "layers", "examples", *map(outside_group, OUTSIDE)))
    wanted.update(all_adapter_groups())
    for project in projects:
        wanted.update(project["dependencies"])
        for name, extra in project.get("optional-dependencies", {}).items():
            wanted.update(() if name in NOT_INSTALLED else extra)
    return sorted(line for line in wanted if not line.startswith("reasonblocks-"))


@nox.session(python=False, default=False)
def closing_line(session: nox.Session) -> None:
    """Adds up the reports of the sessions that the arguments name. The other sessions call it."""
    suites = [suite for name in session.posargs for suite in suites_of(name)]
    total = {key: sum(int(suite.get(key, 0)) for suite in suites) for key in ("tests", "failures", "errors", "skipped")}
    failed = total["failures"] + total["errors"]
    for told in (found for suite in suites for found in suite.iter("property")):
        print(f"{told.get('name')}: {told.get('value')}")
    print(f"{total['tests'] - failed - total['skipped']} passed, {failed} failed, {total['skipped']} skipped")


def suites_of(report: str) -> list[ElementTree.Element]:
    path = REPORTS / f"{report}.xml"
    if path.exists():
        return list(ElementTree.parse(path).getroot().iter("testsuite"))
    print(f"no tests ran in {report}")
    return []
