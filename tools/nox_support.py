"""Helpers of noxfile.py: requirements, environments, pytest, stages two at a time, wheels, and checks of the matrix."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

import nox
import turns
from cells import ADAPTERS, Cell
from nox.command import CommandFailed
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
REPORTS = ROOT / ".nox/reports"
UV = Path(sys.executable).with_name("uv")
PROJECTS = {
    path.parent.name: nox.project.load_toml(path)["project"] for path in sorted(ROOT.glob("packages/*/pyproject.toml"))
}
"""The tables `project` of our packages, by their folders under packages/."""
TEST_ENV = {"PYTHONWARNINGS": "error", "REASONBLOCKS_STRICT": "1"}
"""Set for the tests and for the processes that they start: a warning is an error, and our own errors are raised."""


# --- requirements


def group(*names: str) -> tuple[str, ...]:
    """Return the requirements of dependency groups of pyproject.toml, of all by default, each once."""
    project = nox.project.load_toml(ROOT / "pyproject.toml")
    return tuple(dict.fromkeys(nox.project.dependency_groups(project, *(names or project["dependency-groups"]))))


def group_of(name: str) -> str:
    """Return the dependency group of the tests of an adapter or of an example."""
    return f"test-{name.replace('_', '-')}"


def tests_of(adapter: str) -> str:
    """Return the folder of an adapter's tests."""
    return f"tests/{adapter.replace('-', '_')}"


def requirements(package: str, *, extras: bool, ours: bool = False) -> list[Requirement]:
    """Return what a package requires of others, or of `ours`; with the `extras`, what these require, too."""
    optional = PROJECTS[package].get("optional-dependencies", {}).values() if extras else ()
    found = map(Requirement, chain(PROJECTS[package]["dependencies"], *optional))
    return [need for need in found if need.name.startswith("reasonblocks-") == ours]


def ours_in(package: str) -> list[str]:
    """Return a package of ours after those of ours that it requires, as folders under packages/."""
    needed = [need.name.removeprefix("reasonblocks-") for need in requirements(package, extras=False, ours=True)]
    return [*dict.fromkeys(chain(*map(ours_in, needed))), package]


def floors_of(part: str) -> list[str]:
    """Return the oldest versions that a part supports, as requirements: of an adapter's framework alone."""
    needs = requirements(part, extras=part not in ADAPTERS)
    return [f"{need.name}=={clause.version}" for need in needs for clause in need.specifier if clause.operator == ">="]


# --- environments


def editable(*packages: str) -> tuple[str, ...]:
    """Return the arguments that install packages of ours from their source."""
    return tuple(chain(*(("-e", f"packages/{package}") for package in packages)))


CORE = editable("core[http,memory,otel]", "workbench[learn]", "server", "testing[server]")
"""Our packages that tests need: the core, and those that they look at it with. None of them needs a framework."""
EVERYTHING = (*CORE, *editable(*ADAPTERS, "threads"))
SHARED = {
    "lint": group("lint", "build"),
    "core": (*CORE, *group("test-core")),
    "all": (
        *EVERYTHING,
        *group("types", "bench", "examples", "repo", *map(group_of, [*ADAPTERS, "server", "threads"])),
    ),
    "outcome": (*EVERYTHING, *group("outcome")),
    "serve": editable("core[http]", "workbench", "langchain", "server", "threads"),
}
"""Environments of several sessions. `core` has no framework; one adapter alone is tried by `wheel` and the matrix."""


def own(session: nox.Session) -> str:
    """Return the Python of the environment that only this session uses."""
    return f"{session.bin}/python"


def install(session: nox.Session, python: str, *wanted: str, newest: bool = False) -> None:
    """Install the versions of constraints.txt into the environment of `python`: with uv, else with pip.

    `newest`: install the newest versions that resolve, and nothing else. pip needs an environment that is new for it.
    """
    versions = ["--upgrade"] if newest else ["--constraint", str(CONSTRAINTS)]
    if not newest:
        session.env.update({"PIP_BUILD_CONSTRAINT": str(CONSTRAINTS), "UV_BUILD_CONSTRAINT": str(CONSTRAINTS)})
    if UV.exists():
        uv = (str(UV), "pip", "install", "--quiet", *(["--exact"] if newest else []), "--python", python)
        try:
            session.run_install(*uv, *versions, *wanted, external=True)
            return
        except CommandFailed:
            if newest:
                raise
            session.warn("uv could not install this; trying again with pip")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
    session.run_install(*pip, *versions, *wanted, external=True)


def fresh_environment(session: nox.Session, folder: Path, *wanted: str) -> str:
    """Make an environment with pinned versions and return its Python."""
    shutil.rmtree(folder, ignore_errors=True)
    session.run_install(sys.executable, "-m", "venv", "--without-pip", str(folder), external=True)
    install(session, f"{folder}/bin/python", *wanted)
    return f"{folder}/bin/python"


def shared(session: nox.Session, name: str) -> str:
    """Return the Python of the environment `.nox/NAME`, which several sessions use at the same time.

    Make it if it is missing, or if its requirements, constraints.txt or a package's pyproject.toml have changed since
    it was made. In that case wait until no other session uses it.
    """
    folder = ROOT / ".nox" / name
    ready = folder / "made-from.txt"
    files = [CONSTRAINTS, *(ROOT / "packages" / package / "pyproject.toml" for package in PROJECTS)]
    made_from = "\n".join([sys.version, *SHARED[name], *(file.read_text(encoding="utf-8") for file in files)])
    folder.parent.mkdir(exist_ok=True)
    lock = os.open(f"{folder}.environment.lock", os.O_RDWR | os.O_CREAT)  # held until this process ends
    take = partial(turns.take, lock, session.name, os.getpid())
    take(shared=True)
    while not ready.exists() or ready.read_text(encoding="utf-8") != made_from:
        take()
        if not ready.exists() or ready.read_text(encoding="utf-8") != made_from:
            fresh_environment(session, folder, *SHARED[name])
            ready.write_text(made_from, encoding="utf-8")
        take(shared=True)
    return f"{folder}/bin/python"


# --- tests


def run_pytest(session: nox.Session, python: str, *arguments: str, got: str = "constraints.txt", **env: str) -> None:
    """Run pytest, with the session's arguments, too, and leave a report for `summary` and `./dev frameworks`.

    `got` names the tested versions in the report. `env` is added to the variables of the tests.
    """
    report = (f"--junitxml={REPORTS / session.name}.xml", "-o", f"junit_suite_name={got}")
    nothing_chosen = [5] if session.posargs else []
    session.run(
        python, "-m", "pytest", *report, *arguments, *session.posargs,
        env=TEST_ENV | env, success_codes=[0, *nothing_chosen], external=True,
    )  # fmt: skip


# --- stages

GRACE_S = 5.0
"""The time that interrupted stages have to end by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A command that has ended. `block` is its whole output between two lines with its name."""

    name: str
    code: int
    seconds: float
    block: str = ""


def run_stages(session: nox.Session, *batches: Mapping[str, Sequence[str]]) -> None:
    """Run sessions with their arguments, each batch two at a time, and print what they found."""
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    done: list[Stage] = []
    for batch in batches:
        done += in_lanes({name: ["./dev", name, *arguments] for name, arguments in batch.items()}, REPORTS)
    print(summary(done, REPORTS), flush=True)
    if failed := [stage.name for stage in done if stage.code]:
        session.error(f"failed: {', '.join(failed)}")


def in_lanes(commands: Mapping[str, Sequence[str]], logs: Path) -> list[Stage]:
    """Run named commands two at a time, in their order, and print the output of each in one block when it ends.

    Until then it is in `NAME.log` in the folder `logs`. A failure does not stop the others. Ctrl-C and the signals that
    end a process raise `KeyboardInterrupt`, after every running command was stopped with its children.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, signal.default_int_handler)
    running: list[int] = []
    stages: list[Future[Stage]] = []
    with ThreadPoolExecutor(2) as lanes:
        try:
            for name, command in commands.items():
                stages.append(lanes.submit(run_stage, name, command, logs, running))
            for stage in as_completed(stages):
                print(stage.result().block, flush=True)
            return [stage.result() for stage in stages]
        finally:
            started = [stage for stage in stages if not stage.cancel()]
            send(signal.SIGINT, running)
            try:
                wait(started, timeout=GRACE_S)
            finally:
                send(signal.SIGKILL, running)


def run_stage(name: str, command: Sequence[str], logs: Path, running: list[int]) -> Stage:
    """Run a command in a process group of its own, which is in `running` until it ends."""
    began, log = time.monotonic(), logs / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    running.append(process.pid)
    print(f"--- {name}: started\n", end="", flush=True)
    _, status, usage = os.wait4(process.pid, 0)
    send(signal.SIGKILL, [process.pid])  # children may ignore an interrupt, for instance background jobs of a shell
    running.remove(process.pid)
    code = process.returncode = os.waitstatus_to_exitcode(status)
    seconds, cpu_seconds = time.monotonic() - began, usage.ru_utime + usage.ru_stime
    output = log.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    end = f"{f'failed ({code})' if code else 'succeeded'} in {seconds:.0f} s, CPU {cpu_seconds:.0f} s"
    return Stage(name=name, code=code, seconds=seconds, block=f"--- {name}\n{output}\n--- {name}: {end}\n")


def send(number: signal.Signals, groups: Sequence[int]) -> None:
    for group in [*groups]:
        with suppress(ProcessLookupError):
            os.killpg(group, number)


COUNTS = ("passed", "failed", "skipped")
ROW = "{:34}{:>6}  {:>6}  {:>7}  {:>7}  {}"
COMPARED = "compared with the core"
"""The property under which tests/parity reports what it has compared; Hypothesis leaves other properties."""


def summary(stages: Sequence[Stage], reports: Path) -> str:
    """Return a table of the stages, the longest first, what was compared with the core, and the closing line."""
    rows = [ROW.format("stage", *COUNTS, "minutes", "versions")]
    compared: list[str] = []
    total = Counter[str]()
    for stage in sorted(stages, key=lambda stage: -stage.seconds):
        versions, counts, notes = found_in(reports / f"{stage.name}.xml")
        if stage.code and not counts["failed"]:
            versions = f"failed ({stage.code}), see its output"
        cells = (counts[count] or "-" for count in COUNTS)
        rows.append(ROW.format(stage.name, *cells, f"{stage.seconds / 60:.1f}", versions).rstrip())
        compared += [f"{COMPARED}: {note}" for note in notes]
        total += counts
    return "\n".join([*rows, *compared, ", ".join(f"{total[count]} {count}" for count in COUNTS)])


def found_in(report: Path) -> tuple[str, Counter[str], list[str]]:
    """Return the tested versions, the numbers of tests, and what was compared: nothing if no tests ran."""
    if not report.exists():
        return "", Counter(), []
    (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
    tests, failures, errors, skipped = (int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped"))
    failed = failures + errors
    notes = [str(noted.get("value")) for noted in suite.iter("property") if noted.get("name") == COMPARED]
    return str(suite.get("name")), Counter(passed=tests - failed - skipped, failed=failed, skipped=skipped), notes


# --- wheels and installs

KIT = ("workbench", "testing")
"""Has the scripted models of an adapter's example."""


def scripts_of(package: str) -> tuple[str, str | None]:
    """Return the script that tries a package with those of ours that it requires, and one that also needs `KIT`."""
    return f"tools/{'adapter' if package in ADAPTERS else package}_smoke.py", ADAPTERS.get(package, {}).get("example")


def build_wheels(session: nox.Session, python: str, folder: Path) -> dict[str, str]:
    """Build the wheels of all packages into the folder, and return their paths by package."""
    built = {}
    for package, project in PROJECTS.items():
        with session.chdir(ROOT / "packages" / package):
            build = (python, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder))
            session.run(*build, silent=True, external=True)
        built[package] = str(next(folder.glob(f"{project['name'].replace('-', '_')}-*.whl")))
    return built


def try_wheels(session: nox.Session, wheels: Mapping[str, str], folder: Path) -> None:
    """Install each wheel, with those that it requires, into an environment of its own, and run its scripts there."""
    env = {**TEST_ENV, "REASONBLOCKS_HOME": str(folder / "home"), "QDRANT_URL": None, "PYTHONPATH": None}
    for package in wheels:
        python = fresh_environment(session, folder / f"env-{package}", *(wheels[name] for name in ours_in(package)))
        script, example = scripts_of(package)
        with session.chdir(folder):
            session.run(python, "-W", "error", str(ROOT / script), env=env, external=True, silent=True)
            if example:
                install(session, python, *(wheels[name] for name in KIT))
                session.run(python, "-W", "error", str(ROOT / example), env=env, external=True, silent=True)


def install_as_readers_do(session: nox.Session, python: str, packages: Collection[str]) -> None:
    """Run the commands of the README's section "Install" for these packages, with the pip that this Python bundles."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Install\n")[1].split("\n## ")[0]
    for folders in re.findall(r"^pip install (\./.*?) +#", section, re.MULTILINE):
        package = folders.rpartition("/")[2]
        if package in packages:
            script, example = scripts_of(package)
            then = ("--beside", *(f"./packages/{name}" for name in KIT), "--then", example) if example else ()
            session.run(python, "tools/fresh_install.py", *folders.split(), "--run", script, *then, external=True)


# --- the matrix

PRINT_VERSIONS = "import sys, importlib.metadata as m; print(sys.version.split()[0], *map(m.version, sys.argv[1:]))"


def check_versions(session: nox.Session, cell: Cell) -> str:
    """Print and return the versions of Python and of the part's requirements.

    Fail the session if they are not those that were asked for. The newest framework is at least the one of
    versions.toml, or of the line that is the newest on this Python.
    """
    needs = requirements(cell.part, extras=False) if cell.part in PROJECTS else []
    names = ["Python", *(need.name for need in needs if need.marker is None)]
    got = dict(zip(names, str(session.run("python", "-c", PRINT_VERSIONS, *names[1:], silent=True, log=False)).split()))
    said = ", ".join(f"{name} {version}" for name, version in got.items())
    print(f"got {said}")
    asked = [f"Python=={cell.python}.*"]
    if cell.versions == "oldest":
        asked += floors_of(cell.part)
    elif table := ADAPTERS.get(cell.part):
        asked += [f"{table['distribution']}>={table.get('newest_line', {}).get(cell.python, table['newest'])}"]
    for need in map(Requirement, asked):
        if need.name in got and not need.specifier.contains(got[need.name]):
            session.error(f"asked for {need}, got {got[need.name]}")
    return said
