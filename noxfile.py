"""The project's commands: `./dev NAME [ARGS]` runs the session NAME."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from itertools import takewhile
from pathlib import Path

import nox
from packaging.specifiers import SpecifierSet

sys.path.append(str(Path(__file__).parent / "tools"))
from cells import ADAPTERS, CELLS, ENDS, PYTHONS, Cell
from nox_support import (
    CONSTRAINTS,
    PACKAGES,
    ROOT,
    UV,
    build_wheels,
    check_python,
    check_versions,
    floors_of,
    group,
    group_of,
    install,
    install_as_readers_do,
    install_pinned,
    requirements,
    run_pytest,
    run_stages,
    shared_environment,
    tests_of,
    try_wheels,
)

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.sessions = ["tests"]

OUTSIDE = sorted(path.parent.name for path in ROOT.glob("examples/*/pyproject.toml"))
"""Adapters as somebody outside would write them: distributions of their own under examples/."""
TYPED = ("packages", "tests", "examples", "benchmarks", "tools", "noxfile.py")


def editable(*packages: str) -> tuple[str, ...]:
    """Return the arguments that install packages of ours from their source."""
    return tuple(part for package in packages for part in ("-e", f"packages/{package}"))


CORE = editable("core[http,memory,otel]", "workbench[learn]", "server", "testing[server]")
"""What tests need of ours: the core, and what they look at it with. None of it needs a framework."""
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
NEED_A_MODEL = ("outcome", "memory_second_run")
"""Benchmarks that run only if they are named, in the environment `outcome`."""

GROUPS = (
    "dev",
    "build",
    "lint",
    "types",
    "bench",
    "outcome",
    "examples",
    "repo",
    *map(group_of, [*ADAPTERS, "server", "threads", *OUTSIDE]),
)
"""The dependency groups that sessions install."""
CORE_TESTS = ("tests/core", "tests/parity", "--ignore=tests/parity/test_adapters.py")
WORKBENCH_TESTS = ("tests/workbench", "tests/testing")
WORKBENCH_BESIDE_OTHERS = (
    "tests/workbench/cli/test_recorded_files.py", "tests/workbench/cli/test_written.py",
    "tests/workbench/traces/test_langchain.py", "tests/workbench/traces/test_langsmith.py",
)  # fmt: skip
"""Tests of the workbench that skip a part where LangChain is missing, as in the environment `core`."""
SERVER_TESTS = ("tests/server", "--ignore=tests/server/ui")
PARITY = ROOT / ".nox/parity-files"
MATRIX_PARITY = ROOT / ".nox/parity-files-matrix"


def shared(session: nox.Session, name: str) -> str:
    """Return the Python of a shared environment."""
    return shared_environment(session, name, SHARED[name])


def own(session: nox.Session) -> str:
    """Return the Python of the environment that only this session uses."""
    return str(Path(session.bin) / "python")


def leaves(folder: Path) -> dict[str, str]:
    """Return the variable that names the folder where adapters leave their decisions."""
    return {"REASONBLOCKS_PARITY": str(folder)}


# --- see it work


@nox.session(reuse_venv=True)
def demo(session: nox.Session) -> None:
    """A scripted agent on a broken repository, plain and steered; with FILES: your own recorded runs replayed."""
    install_pinned(session, own(session), *editable("core", "workbench", "langchain"))
    session.chdir(os.environ.get("DEV_CWD", "."))
    session.run("python", str(ROOT / "examples/demo.py"), *session.posargs)


@nox.session(name="demo-threads", reuse_venv=True)
def demo_threads(session: nox.Session) -> None:
    """A stuck agent that is handed over to a person, and goes on with the answer; with --ask, you are the person."""
    install_pinned(session, own(session), *editable("core", "workbench", "langchain", "threads"))
    session.chdir(os.environ.get("DEV_CWD", "."))
    session.run("python", str(ROOT / "examples/threads_handover.py"), *session.posargs)


@nox.session(python=False)
def serve(session: nox.Session) -> None:
    """Start the server with the demo's runs and a live one, until Ctrl-C. Arguments go to `reasonblocks serve`."""
    python = shared(session, "serve")
    session.chdir(os.environ.get("DEV_CWD", "."))
    session.run(python, str(ROOT / "examples/team_server.py"), *session.posargs, external=True)


@nox.session(python=False)
def bench(session: nox.Session) -> None:
    """The scripts under benchmarks/ that need no model, or those that are named; other arguments go to them."""
    scripts = {path.stem: path for path in sorted(ROOT.glob("benchmarks/[!_]*.py"))}
    if unknown := [arg for arg in takewhile(lambda arg: arg[:1] != "-", session.posargs) if arg not in scripts]:
        session.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(scripts)}")
    named = [arg for arg in session.posargs if arg in scripts]
    options = [arg for arg in session.posargs if arg not in scripts]
    for name in named or [name for name in scripts if name not in NEED_A_MODEL]:
        python = shared(session, "outcome" if name in NEED_A_MODEL else "all")
        session.run(python, str(scripts[name]), *options, external=True)


# --- test it on this Python

QUICK_CHECKS = ("lint", "layers")
INSTALLED = ("core",)
"""The packages whose install is tested at every commit; the matrix tests all of them on every Python."""
ONLY_IN_THE_MATRIX = ("tests/testing/test_sabotage.py",)
"""Tests of the test kit that take half a minute and test other tests; `workbench` alone runs them, too."""
OUTSIDE_IN_THE_MATRIX = ("pydantic_ai_adapter",)
"""Adapters under examples/ that take almost a minute; the template is tested at every commit."""
LONGEST = (
    "adapters(openai-agents)", "core", "wheel", "adapters(claude-agent)", "server", "adapters(langchain)", "workbench",
    "types", "threads", "repo",
)  # fmt: skip
"""These sessions start first, the longest at the beginning, so that both lanes end at about the same time."""


@nox.session(python=False)
def tests(session: nox.Session) -> None:
    """All that follows but `parity` and what only the matrix runs, two sessions at a time, and a closing line.

    Arguments go to pytest.
    """
    stages = {name: list[str]() for name in (*QUICK_CHECKS, "types", "wheel")}
    for name in ADAPTERS:
        shorter = [f"--ignore={tests_of(name)}/test_parity.py", *shorter_of(name)]
        stages[f"adapters({name})"] = [*dict.fromkeys(shorter), *session.posargs]
    outside = [f"outside({name})" for name in OUTSIDE if name not in OUTSIDE_IN_THE_MATRIX]
    parts = ("core", "workbench", "server", "threads", "repo", "pages", "examples", *outside)
    stages |= dict.fromkeys(parts, session.posargs)
    stages["wheel"] = [*INSTALLED]
    stages["workbench"] = [*shorter_of("workbench"), *session.posargs]
    run_stages(session, {name: stages[name] for name in dict.fromkeys([*QUICK_CHECKS, *LONGEST, *stages])})


@nox.session(python=False)
def lint(session: nox.Session) -> None:
    """Style: ruff's rules and ruff's format."""
    ruff = (shared(session, "lint"), "-m", "ruff")
    session.run(*ruff, "check", *session.posargs, external=True)
    session.run(*ruff, "format", "--check", external=True)


@nox.session(python=False)
def layers(session: nox.Session) -> None:
    """The floors: who may import whom."""
    program = Path(shared(session, "lint")).with_name("lint-imports")
    sources = os.pathsep.join(str(package / "src") for package in PACKAGES)
    session.run(str(program), "--no-logo", *session.posargs, env={"PYTHONPATH": sources}, external=True)


@nox.session(python=False)
def types(session: nox.Session) -> None:
    """mypy, strict, on everything but what `outside` checks."""
    elsewhere = f"^examples/({'|'.join(OUTSIDE)})/"  # their frameworks are installed in the sessions `outside`
    session.run(
        shared(session, "all"), "-m", "mypy", "--exclude", elsewhere, *(session.posargs or TYPED), external=True
    )


@nox.session(python=False)
def core(session: nox.Session) -> None:
    """The core, with no framework installed."""
    run_pytest(session, shared(session, "core"), *CORE_TESTS, report="core")


@nox.session(python=False)
def workbench(session: nox.Session) -> None:
    """The workbench and the test kit, with no framework installed."""
    run_pytest(session, shared(session, "core"), *WORKBENCH_TESTS, report="workbench")


@nox.session(python=False)
@nox.parametrize("adapter", list(ADAPTERS), ids=list(ADAPTERS))
def adapters(session: nox.Session, adapter: str) -> None:
    """An adapter, on a real agent of its framework."""
    run_pytest(session, shared(session, "all"), tests_of(adapter), report=f"adapters({adapter})")


@nox.session(python=False)
def parity(session: nox.Session) -> None:
    """Every adapter decides as the core does, entry by entry: runs the adapters, then compares with the core."""
    shutil.rmtree(PARITY, ignore_errors=True)
    for name in ADAPTERS:
        test = f"{tests_of(name)}/test_parity.py"
        run_pytest(session, shared(session, "all"), test, report=f"parity({name})", env=leaves(PARITY))
    run_pytest(session, shared(session, "core"), "tests/parity", report="parity", env=leaves(PARITY))


@nox.session(python=False)
def examples(session: nox.Session) -> None:
    """The examples, run as they are read: loops on the providers' own clients, and agents of the frameworks."""
    run_pytest(session, shared(session, "all"), "tests/examples", report="examples")


@nox.session(reuse_venv=True)
@nox.parametrize("example", OUTSIDE, ids=OUTSIDE)
def outside(session: nox.Session, example: str) -> None:
    """An adapter written from outside, in an environment of its own: its types, its tests, the whole suite."""
    project = nox.project.load_toml(ROOT / "examples" / example / "pyproject.toml")["project"]
    supported = SpecifierSet(project["requires-python"])
    if not supported.contains(platform.python_version()):
        session.skip(f"{project['name']} needs Python {supported}, this is {platform.python_version()}")
    oldest = next(python for python in PYTHONS if supported.contains(python))
    install_pinned(session, own(session), *CORE, "-e", f"examples/{example}", *group(group_of(example)))
    cache = f"--cache-dir=.mypy_cache/{example}"  # other versions are installed here than for `types`
    session.run("mypy", cache, "--python-version", oldest, f"examples/{example}")
    run_pytest(session, own(session), f"examples/{example}", report=f"outside({example})")


@nox.session(python=False)
def repo(session: nox.Session) -> None:
    """The repository's own rules, and what needs a framework beside the core."""
    tests = ("tests/repo", "tests/outcome", *WORKBENCH_BESIDE_OTHERS)
    run_pytest(session, shared(session, "all"), *tests, report="repo")


@nox.session(python=False)
def server(session: nox.Session) -> None:
    """The server, its storage and its commands; `pages` tests its dashboard in a browser."""
    run_pytest(session, shared(session, "all"), *SERVER_TESTS, report="server")


@nox.session(python=False)
def threads(session: nox.Session) -> None:
    """The matters that a person decides: rules, stores, engine and commands; `server` and `pages` test their pages."""
    run_pytest(session, shared(session, "all"), "tests/threads", report="threads")


@nox.session(python=False)
def pages(session: nox.Session) -> None:
    """The pages of reports and of the dashboard in a browser; without one, the tests are skipped."""
    run_pytest(session, shared(session, "all"), "tests/report", "tests/server/ui", report="pages")


@nox.session(python=False)
def outcome(session: nox.Session) -> None:
    """The tests of `./dev bench outcome`, with the worlds installed; `repo` runs those that need none."""
    run_pytest(session, shared(session, "outcome"), "tests/outcome", report="outcome")


# --- wheels


@nox.session(python=False)
def wheels(session: nox.Session) -> None:
    """The wheels of all packages, into dist/; twine checks what an index would show of them."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    python = shared(session, "lint")
    paths = build_wheels(session, python, ROOT / "dist").values()
    session.run(python, "-m", "twine", "check", "--strict", *paths, external=True)
    for path in paths:
        print(Path(path).relative_to(ROOT))


@nox.session(python=False)
def wheel(session: nox.Session) -> None:
    """Test the README's installs, each in a fresh environment; then the built wheels, without access to the source.

    Arguments are the packages whose installs are tested, all by default.
    """
    install_as_readers_do(session, sys.executable, session.posargs)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        try_wheels(session, build_wheels(session, shared(session, "lint"), folder / "dist"), folder)


# --- test it on every Python and framework

WHOLE = "REASONBLOCKS_WHOLE"
"""The variable that adds the tests that take minutes (tests/whole.py)."""


@nox.session(python=False)
def matrix(session: nox.Session) -> None:
    """Test every Python and both ends of the frameworks' versions, two cells at a time; a table of them comes last.

    A cell has an environment of its own, with the newest versions that resolve, or the oldest ones that are supported.

    - `core` on every Python, with the workbench and the test kit: all that `./dev tests` runs; on the newest Python all
      tests.
    - Each adapter alone, on the oldest and the newest Python, with the oldest and the newest framework: all tests with
      the oldest of both and with the newest of both, and what `./dev tests` runs in the other two cells. So each
      framework, and each of these Pythons, runs all tests once: sessions of the real Claude CLI take minutes.
    - `server` and `threads` with their oldest requirements on the oldest Python, and with the newest ones on the newest
      Python: all tests; with the newest ones on the oldest Python: what `./dev tests` runs. The server's newest cell
      has all packages beside it, for its tests with agents.
    - `install`: the README's installs, with the pip of each Python: all on the oldest and the newest, the core's on
      every one.
    - With pinned versions, on this Python, all tests of `repo` and `pages`, and the larger adapter under examples/.

    Every cell of an adapter leaves a file of what it decides, and one core is compared with all of them at the end: so
    the oldest framework decides as the newest does, and one Python as another.
    """
    shutil.rmtree(MATRIX_PARITY, ignore_errors=True)
    beside = [*(f"outside({name})" for name in OUTSIDE_IN_THE_MATRIX), "repo", "pages"]
    shorter = [cell.name for cell in CELLS if not cell.whole]
    names = [*(cell.name for cell in CELLS if cell.whole), *beside, *shorter]
    os.environ[WHOLE] = "1"
    stages = {name: () if name.startswith("matrix-install") else tuple(session.posargs) for name in names}
    run_stages(session, stages, last="matrix-parity")


def test_cell(session: nox.Session, cell: Cell) -> None:
    """Run the tests of a cell in its environment."""
    if cell.part == "install":
        check_python(session)
        install_as_readers_do(session, own(session), () if cell.python in ENDS else INSTALLED)
        return
    install(session, own(session), *wanted_by(cell), exact=True)
    got = f"{check_python(session)}, {check_versions(session, cell)}"
    env = {WHOLE: str(int(cell.whole)), **(leaves(MATRIX_PARITY / cell.name) if cell.part in ADAPTERS else {})}
    tests = {"core": (*CORE_TESTS, *WORKBENCH_TESTS), "server": SERVER_TESTS}.get(cell.part, (tests_of(cell.part),))
    shorter = () if cell.whole else shorter_of(cell.part)
    run_pytest(session, own(session), *tests, *shorter, report=cell.name, got=got, env=env)


def wanted_by(cell: Cell) -> tuple[str, ...]:
    """Return what is installed for a cell."""
    if cell.part == "core":
        return (*CORE, *group("test-core"))
    extra, beside = "" if cell.part in ADAPTERS else "[postgres]", CORE
    if cell == Cell(part="server", python=ENDS[1], whole=True):
        extra, beside = "[postgres,qdrant]", (*EVERYTHING, *group("test-core"))
    elif cell.part == "server":
        beside = (*CORE, *editable("threads"))
    floors = floors_of(cell.part) if cell.versions == "oldest" else ()
    return (*beside, *editable(f"{cell.part}{extra}"), *group(group_of(cell.part)), *floors)


def shorter_of(part: str) -> list[str]:
    """Return what `tests` gives to pytest so that the tests of a part are shorter."""
    if part in ("core", "workbench"):
        return [f"--ignore={test}" for test in ONLY_IN_THE_MATRIX]
    return [*ADAPTERS.get(part, {}).get("every_commit", [])]


def session_of(cell: Cell) -> None:
    """Make the session of a cell."""

    @nox.session(name=cell.name, python=cell.python, reuse_venv=UV.exists())
    def run(session: nox.Session) -> None:
        """One cell of `matrix`."""
        test_cell(session, cell)


for _cell in CELLS:
    session_of(_cell)


@nox.session(name="matrix-parity", python=False)
def matrix_parity(session: nox.Session) -> None:
    """Every cell of an adapter decides as the core does: compares what the cells left."""
    run_pytest(session, shared(session, "core"), "tests/parity", report="matrix-parity", env=leaves(MATRIX_PARITY))


# --- keep it


@nox.session(python=False)
def frameworks(session: nox.Session) -> None:
    """Writes docs/frameworks.md, from what the last matrix has found."""
    session.run(shared(session, "core"), "tools/frameworks.py", *session.posargs, external=True)


@nox.session(reuse_venv=True)
def lock(session: nox.Session) -> None:
    """Writes constraints.txt: what packages and sessions need, on every Python; --upgrade for newer versions."""
    install(session, own(session), "uv")
    wanted = Path(session.create_tmp()) / "wanted.txt"
    wanted.write_text("\n".join(requirements(GROUPS)) + "\n", encoding="utf-8")
    how = ("--universal", "--python-version", PYTHONS[0], "--no-header", "--no-annotate", "--quiet")
    session.run("uv", "pip", "compile", *how, *session.posargs, str(wanted), "--output-file", str(CONSTRAINTS))
