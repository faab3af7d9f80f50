"""Helpers of noxfile.py: environments, installs, pytest with a report, stages, and the closing line."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree

import lanes
import nox
import turns
from cells import ADAPTERS, Cell
from nox.command import CommandFailed
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
ENVIRONMENTS = ROOT / ".nox"
REPORTS = ROOT / ".nox/reports"
PACKAGES = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
UV = Path(sys.executable).with_name("uv")

COMPARED = "compared with the core"
"""The property under which tests/parity reports what it has compared; Hypothesis leaves other properties."""
TEST_ENV = {"PYTHONWARNINGS": "error", "REASONBLOCKS_STRICT": "1"}
"""Set for the tests and for the processes that they start: a warning is an error, and our own errors are raised."""
PINNED_BUILD = {"PIP_BUILD_CONSTRAINT": str(CONSTRAINTS), "UV_BUILD_CONSTRAINT": str(CONSTRAINTS)}
"""Makes pip and uv build a package with the pinned versions of its build requirements."""
SMOKE_SCRIPTS = {
    "core": "tools/bare_core.py",
    "workbench": "tools/bare_workbench.py",
    "langchain": "tools/adapter_alone.py",
    "openai-agents": "tools/adapter_alone.py",
    "claude-agent": "tools/adapter_alone.py",
    "server": "tools/server_smoke.py",
    "threads": "tools/threads_smoke.py",
    "testing": "tools/testing_smoke.py",
}
"""A script for each package, run where only this package is installed, with those of ours that it requires."""
EXAMPLES = {
    "langchain": "examples/demo.py",
    "openai-agents": "examples/openai_agents_run.py",
    "claude-agent": "examples/claude_agent_run.py",
}
"""A run of a real agent with each adapter, after the test kit, which has scripted models, is installed beside it."""
KIT = ("workbench", "testing")


def group(*names: str) -> tuple[str, ...]:
    """Return the requirements of dependency groups of pyproject.toml, each once."""
    found = nox.project.dependency_groups(nox.project.load_toml(ROOT / "pyproject.toml"), *names)
    return tuple(dict.fromkeys(found))


def group_of(name: str) -> str:
    """Return the dependency group of the tests of an adapter or of an example."""
    return f"test-{name.replace('_', '-')}"


def tests_of(adapter: str) -> str:
    """Return the folder of an adapter's tests."""
    return f"tests/{adapter.replace('-', '_')}"


def required_by(package: str, *, extras: bool = False) -> list[Requirement]:
    """Return what a package requires on this Python, and its extras, without our own packages."""
    project = nox.project.load_toml(ROOT / "packages" / package / "pyproject.toml")["project"]
    of_extras = project.get("optional-dependencies", {}).values() if extras else ()
    found = map(Requirement, [*project["dependencies"], *chain(*of_extras)])
    return [need for need in found if not need.name.startswith("reasonblocks-")]


def ours_in(package: str) -> list[str]:
    """Return a package of ours after those of ours that it requires, as folders under packages/."""
    project = nox.project.load_toml(ROOT / "packages" / package / "pyproject.toml")["project"]
    names = [Requirement(line).name for line in project["dependencies"]]
    needed = [name.removeprefix("reasonblocks-") for name in names if name.startswith("reasonblocks-")]
    return [*dict.fromkeys(chain(*map(ours_in, needed))), package]


def floors_of(part: str) -> list[str]:
    """Return the oldest versions that a part supports, as requirements: of an adapter's framework alone."""
    needs = required_by(part, extras=part not in ADAPTERS)
    lowest = ((need, clause) for need in needs for clause in need.specifier if clause.operator == ">=")
    return [f"{need.name}=={clause.version}" for need, clause in lowest]


# --- environments


def python_of(folder: Path) -> str:
    return str(folder / "bin/python")


def install(session: nox.Session, python: str, *wanted: str, exact: bool = False) -> None:
    """Install the newest versions that resolve into the environment of `python`: with uv, else with pip.

    `exact`: uv also upgrades and removes what is there already. pip does not: it needs an environment that is new.
    """
    if UV.exists():
        how = ("--upgrade", "--exact") if exact else ()
        try:
            session.run_install(str(UV), "pip", "install", "--quiet", *how, "--python", python, *wanted, external=True)
            return
        except CommandFailed:
            if exact:
                raise
            session.warn("uv could not install this; trying again with pip")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
    session.run_install(*pip, *wanted, external=True)


def install_pinned(session: nox.Session, python: str, *wanted: str) -> None:
    """Install the versions of constraints.txt."""
    session.env.update(PINNED_BUILD)
    install(session, python, "--constraint", str(CONSTRAINTS), *wanted)


def fresh_environment(session: nox.Session, folder: Path, *wanted: str) -> str:
    """Make an environment with pinned versions and return its Python."""
    shutil.rmtree(folder, ignore_errors=True)
    session.run_install(sys.executable, "-m", "venv", "--without-pip", str(folder), external=True)
    install_pinned(session, python_of(folder), *wanted)
    return python_of(folder)


_IN_USE: list[TextIO] = []
"""Locks of the environments that this process uses, held until it ends."""


def shared_environment(session: nox.Session, name: str, wanted: Sequence[str]) -> str:
    """Return the Python of the environment `.nox/NAME`, which several sessions use at the same time.

    Make it if it is missing, or if the requirements, constraints.txt or a package's pyproject.toml have changed since
    it was made. In that case wait until no other session uses it.
    """
    folder, ready = ENVIRONMENTS / name, ENVIRONMENTS / name / "made-from.txt"
    files = [CONSTRAINTS, *(package / "pyproject.toml" for package in PACKAGES)]
    made_from = "\n".join([sys.version, *wanted, *(file.read_text(encoding="utf-8") for file in files)])
    ENVIRONMENTS.mkdir(exist_ok=True)
    lock = (ENVIRONMENTS / f"{name}.environment.lock").open("a+", encoding="utf-8")
    _IN_USE.append(lock)
    take = partial(turns.take, lock.fileno(), session.name, os.getpid())
    take(shared=True)
    while not (ready.exists() and ready.read_text(encoding="utf-8") == made_from):
        take()
        if not (ready.exists() and ready.read_text(encoding="utf-8") == made_from):
            fresh_environment(session, folder, *wanted)
            ready.write_text(made_from, encoding="utf-8")
        take(shared=True)
    return python_of(folder)


# --- tests


def run_pytest(
    session: nox.Session,
    python: str,
    *paths: str,
    report: str,
    got: str = "constraints.txt",
    env: Mapping[str, str] | None = None,
) -> None:
    """Run pytest with the session's arguments, and leave a report for `closing_line` and `./dev frameworks`.

    `got` names the tested versions in the report. `env` is added to the variables of the tests.
    """
    options = (f"--junitxml={REPORTS / report}.xml", "-o", f"junit_suite_name={got}")
    nothing_chosen = [5] if session.posargs else []
    session.run(
        python, "-m", "pytest", *options, *paths, *session.posargs,
        env={**TEST_ENV, **(env or {})}, success_codes=[0, *nothing_chosen], external=True,
    )  # fmt: skip


def run_stages(session: nox.Session, stages: Mapping[str, Sequence[str]], last: str | None = None) -> None:
    """Run sessions with their arguments as stages in two lanes, then the session `last`, then print what they found."""
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    done = in_lanes(stages) + (in_lanes({last: session.posargs}) if last else [])
    print(summary(done), flush=True)
    if failed := [stage.name for stage in done if stage.code]:
        session.error(f"failed: {', '.join(failed)}")


def in_lanes(stages: Mapping[str, Sequence[str]]) -> list[lanes.Stage]:
    """Run sessions as `./dev` runs them, in two lanes, and return their stages."""
    found = [lanes.Stage(name=name, command=["./dev", name, *arguments]) for name, arguments in stages.items()]
    lanes.run(found, REPORTS, cwd=ROOT, say=partial(print, flush=True))
    return found


@dataclass(slots=True, kw_only=True)
class Report:
    """The report of a stage: the tested versions, and numbers of tests. Empty if it ran no tests."""

    versions: str = ""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: Sequence[str] = ()


def report_of(stage: str) -> Report:
    path = REPORTS / f"{stage}.xml"
    if not path.exists():
        return Report()
    (suite,) = ElementTree.parse(path).getroot().iter("testsuite")
    tests, failures, errors, skipped = (int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped"))
    return Report(
        versions=str(suite.get("name")),
        passed=tests - failures - errors - skipped,
        failed=failures + errors,
        skipped=skipped,
        notes=[str(noted.get("value")) for noted in suite.iter("property") if noted.get("name") == COMPARED],
    )


def summary(stages: Sequence[lanes.Stage]) -> str:
    """Return a table of the stages, the longest first, what was compared with the core, and the closing line."""
    reports = {stage.name: report_of(stage.name) for stage in stages}
    rows = [("stage", "versions", "passed", "failed", "skipped", "minutes")]
    for stage in sorted(stages, key=lambda stage: -stage.seconds):
        found = reports[stage.name]
        counts = (str(found.passed or "-"), str(found.failed or "-"), str(found.skipped or "-"))
        versions = found.versions if found.failed or not stage.code else f"failed ({stage.code}), see its output"
        rows.append((stage.name, versions, *counts, f"{stage.seconds / 60:.1f}"))
    widths = [max(map(len, column)) for column in zip(*rows)]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    compared = [f"{COMPARED}: {note}" for found in reports.values() for note in found.notes]
    passed, failed, skipped = (
        sum(getattr(found, count) for found in reports.values()) for count in ("passed", "failed", "skipped")
    )
    return "\n".join([*table, *compared, f"{passed} passed, {failed} failed, {skipped} skipped"])


# --- wheels and installs

WHERE_INSTALLED = """
import importlib, pathlib, sys
for name in sys.argv[1:]:
    path = pathlib.Path(importlib.import_module(name).__file__)
    assert "site-packages" in path.parts, path
"""


def build_wheels(session: nox.Session, python: str, folder: Path) -> dict[str, str]:
    """Build the wheels of all packages into the folder, and return their paths by package."""
    for package in PACKAGES:
        with session.chdir(package):
            build = (python, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder))
            session.run(*build, silent=True, external=True)
    names = {package.name: f"reasonblocks_{package.name.replace('-', '_')}-*.whl" for package in PACKAGES}
    return {package: str(next(folder.glob(name))) for package, name in names.items()}


def module_of(package: str) -> str:
    """Return the module of a package of ours."""
    return "reasonblocks" if package == "core" else f"reasonblocks_{package.replace('-', '_')}"


def try_wheels(session: nox.Session, wheels: Mapping[str, str], folder: Path) -> None:
    """Install each wheel, with those that it requires, into an environment of its own, and run its script there."""
    variables = {**TEST_ENV, "REASONBLOCKS_HOME": str(folder / "home"), "QDRANT_URL": None}
    for package, script in SMOKE_SCRIPTS.items():
        env = folder / f"env-{package}"
        ours = ours_in(package)
        python = fresh_environment(session, env, *(wheels[name] for name in ours))
        with session.chdir(folder):
            session.run(
                python, "-I", "-W", "error", "-c", WHERE_INSTALLED, *map(module_of, ours), external=True, log=False
            )
            session.run(python, "-W", "error", str(ROOT / script), env=variables, external=True, silent=True)
            if example := EXAMPLES.get(package):
                install_pinned(session, python, *(wheels[name] for name in KIT))
                session.run(python, "-W", "error", str(ROOT / example), env=variables, external=True, silent=True)


def install_as_readers_do(session: nox.Session, python: str, packages: Sequence[str] = ()) -> None:
    """Run the commands of the README's section "Install" with the pip that this Python bundles.

    `packages` are those whose command is run, all by default.
    """
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Install\n")[1].split("\n## ")[0]
    commands = re.findall(r"^pip install (\./.*?) +#", section, re.MULTILINE)
    if {folders.rpartition("/")[2] for folders in commands} != set(SMOKE_SCRIPTS):
        session.error(f"the README installs {commands}, SMOKE_SCRIPTS has {list(SMOKE_SCRIPTS)}")
    for folders in commands:
        package = folders.rpartition("/")[2]
        if packages and package not in packages:
            continue
        scripts = ["--run", SMOKE_SCRIPTS[package]]
        if example := EXAMPLES.get(package):
            scripts += ["--beside", *(f"./packages/{name}" for name in KIT), "--then", example]
        session.run(python, "tools/fresh_install.py", *folders.split(), *scripts, external=True)


# --- the matrix


def check_python(session: nox.Session) -> str:
    """Print and return the version of the session's Python. Fail the session if another one was asked for."""
    got = printed(session, "import platform; print(platform.python_version())")
    print(f"got Python {got}")
    if not got.startswith(f"{session.python}."):
        session.error(f"asked for Python {session.python}, got {got}")
    return f"Python {got}"


def check_versions(session: nox.Session, cell: Cell) -> str:
    """Print and return what is installed of the part's requirements. Fail the session if it is not what was asked for.

    The newest framework is at least the one of versions.toml, or of the line that is the newest on this Python.
    """
    names = [need.name for need in required_by(cell.part) if need.marker is None]
    program = f"from importlib.metadata import version; print(*map(version, {names!r}))"
    got = dict(zip(names, printed(session, program).split()))
    print(f"got {got}")
    asked = floors_of(cell.part)
    if cell.versions == "newest":
        table = ADAPTERS.get(cell.part, {})
        least = table.get("newest_line", {}).get(cell.python) or table.get("newest")
        asked = [f"{table['distribution']}>={least}"] if table else []
    for need in map(Requirement, asked):
        if need.name in got and not need.specifier.contains(got[need.name]):
            session.error(f"asked for {need}, got {got[need.name]}")
    return ", ".join(f"{name} {version}" for name, version in got.items())


def printed(session: nox.Session, program: str) -> str:
    """Run a Python program in the session's environment and return its output."""
    return str(session.run("python", "-c", program, silent=True, log=False)).strip()


# --- constraints.txt


def requirements(groups: Iterable[str]) -> list[str]:
    """Return everything that these dependency groups and our packages need, without our own packages."""
    wanted = set(group(*groups))
    for project in (nox.project.load_toml(package / "pyproject.toml")["project"] for package in PACKAGES):
        wanted.update(project["dependencies"])
        wanted.update(*project.get("optional-dependencies", {}).values())
    return sorted(line for line in wanted if not line.startswith("reasonblocks-"))
