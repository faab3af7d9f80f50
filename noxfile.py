"""The project's commands: `./dev NAME [ARGS]` runs the session NAME."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import nox
from packaging.specifiers import SpecifierSet

sys.path.append(str(Path(__file__).parent / "tools"))
from nox_support import (
    ADAPTERS,
    CONSTRAINTS,
    PACKAGES,
    PYTHONS,
    ROOT,
    UV,
    build_wheels,
    check_framework,
    check_python,
    group,
    group_of,
    install,
    install_as_readers_do,
    install_pinned,
    lowest_of,
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

CORE = ("-e", "packages/core[cli,http,learn,memory,otel,report,testing]")
EVERYTHING = (*CORE, *(part for package in PACKAGES if package.name != "core" for part in ("-e", str(package))))
SERVED = [part for name in ("langchain", "server", "threads") for part in ("-e", f"packages/{name}")]
SHARED = {
    "lint": group("lint", "build"),
    "core": (*CORE, *group("test-core")),
    "all": (
        *EVERYTHING,
        *group("types", "bench", "examples", "repo", *map(group_of, [*ADAPTERS, "server", "threads"])),
    ),
    "outcome": (*EVERYTHING, *group("outcome")),
    "serve": ("-e", "packages/core[cli,http,report]", *SERVED),
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
CORE_BESIDE_OTHERS = (
    "tests/core/cli/test_recorded_files.py", "tests/core/cli/test_written.py", "tests/core/traces/test_langchain.py",
    "tests/core/traces/test_langsmith.py",
)  # fmt: skip
"""Tests of the core that skip a part without LangChain or scikit-learn, which the environment `core` lacks."""
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
    install_pinned(session, own(session), "-e", "packages/core[cli]", "-e", "packages/langchain")
    session.chdir(os.environ.get("DEV_CWD", "."))
    session.run("python", str(ROOT / "examples/demo.py"), *session.posargs)


@nox.session(name="demo-threads", reuse_venv=True)
def demo_threads(session: nox.Session) -> None:
    """A stuck agent that is handed over to a person, and goes on with the answer; with --ask, you are the person."""
    packages = ("packages/core[cli]", "packages/langchain", "packages/threads")
    install_pinned(session, own(session), *(part for package in packages for part in ("-e", package)))
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
    if session.posargs and not session.posargs[0].startswith("-") and session.posargs[0] not in scripts:
        session.error(f"there is no benchmark {session.posargs[0]!r}; there are: {', '.join(scripts)}")
    named = [arg for arg in session.posargs if arg in scripts]
    options = [arg for arg in session.posargs if arg not in scripts]
    for name in named or [name for name in scripts if name not in NEED_A_MODEL]:
        python = shared(session, "outcome" if name in NEED_A_MODEL else "all")
        session.run(python, str(scripts[name]), *options, external=True)


# --- test it on this Python

QUICK_CHECKS = ("lint", "layers")
INSTALLED = ("core",)
"""The packages whose install is tested at every commit; the matrix tests all of them on every Python."""
ONLY_IN_THE_MATRIX = ("tests/core/test_sabotage.py",)
"""Tests of the core that take half a minute and test other tests; `core` alone runs them, too."""
OUTSIDE_IN_THE_MATRIX = ("pydantic_ai_adapter",)
"""Adapters under examples/ that take almost a minute; the template is tested at every commit."""
LONGEST = (
    "adapters(openai-agents)", "core", "wheel", "adapters(claude-agent)", "server", "adapters(langchain)", "types",
    "threads", "repo",
)  # fmt: skip
"""These sessions start first, the longest at the beginning, so that both lanes end at about the same time."""


@nox.session(python=False)
def tests(session: nox.Session) -> None:
    """All that follows but `parity` and what only the matrix runs, two sessions at a time, and a closing line.

    Arguments go to pytest.
    """
    stages = {name: list[str]() for name in (*QUICK_CHECKS, "types", "wheel")}
    stages |= {f"adapters({name})": [*every_commit(name), *session.posargs] for name in ADAPTERS}
    outside = [f"outside({name})" for name in OUTSIDE if name not in OUTSIDE_IN_THE_MATRIX]
    parts = ("core", "server", "threads", "repo", "pages", "examples", *outside)
    stages |= dict.fromkeys(parts, session.posargs)
    stages["wheel"] = [*INSTALLED]
    stages["core"] = [*(f"--ignore={test}" for test in ONLY_IN_THE_MATRIX), *session.posargs]
    run_stages(session, {name: stages[name] for name in dict.fromkeys([*QUICK_CHECKS, *LONGEST, *stages])})


def every_commit(adapter: str) -> list[str]:
    """Return what `tests` gives to pytest for this adapter. The matrix, and the session alone, run everything."""
    return [f"--ignore={tests_of(adapter)}/test_parity.py", *ADAPTERS[adapter].get("every_commit", [])]


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
    """The repository's own rules, and what needs scikit-learn, or a framework beside the core."""
    tests = ("tests/repo", "tests/calibrate", "tests/outcome", *CORE_BESIDE_OTHERS)
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
    """The wheels of all packages, into dist/."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    for path in build_wheels(session, shared(session, "lint"), ROOT / "dist").values():
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
"""The variable that adds the tests that take minutes, and the full number of examples, if it is 1 (tests/whole.py)."""
CELLS = [(name, framework) for name in ADAPTERS for framework in ("oldest", "newest")]
CELL_IDS = ["-".join(cell) for cell in CELLS]
ENDS = [PYTHONS[0], PYTHONS[-1]]
VERSION_CELLS = [(PYTHONS[0], "lowest"), *((python, "newest") for python in ENDS)]
"""The cells of the server and of threads.

The lowest versions are older than the newest Python, which some of them do not support.
"""
CORNERS = [(PYTHONS[0], "oldest"), (PYTHONS[0], "lowest"), (PYTHONS[-1], "newest")]
"""The cells that run everything: the oldest Python with the oldest versions, and the newest with the newest.

What they add depends on neither alone: tests that take minutes, and sessions of the Claude CLI.
"""


def whole(python: object, versions: str = "newest") -> bool:
    """Return True for a cell that runs everything."""
    return (python, versions) in CORNERS


@nox.session(python=False)
def matrix(session: nox.Session) -> None:
    """Test the core on every Python, and the README's installs and all other packages on the oldest and newest one.

    Each adapter is tested with the oldest and newest framework, server and threads with their oldest and newest
    requirements. The tests that take minutes and the full number of examples run on the newest Python with the newest
    versions, and on the oldest Python with the oldest versions (those of PostgreSQL run nowhere else); the other cells
    run the tests of every commit. The server's cell with everything has all packages beside it, for its tests with
    agents.

    Nothing is pinned there, and every cell has an environment of its own, which the next run brings up to date. Beside
    them, `repo`, `pages` and the larger examples run in full, with pinned versions on this Python.

    Every cell of an adapter leaves a file of what it decides, and one core is compared with all of them at the end: so
    the oldest framework decides as the newest does, and one Python as another.
    """
    shutil.rmtree(MATRIX_PARITY, ignore_errors=True)
    tested = [f"matrix-core-{python}" for python in reversed(PYTHONS)]
    tested += [f"matrix-adapter-{python}({cell})" for cell in reversed(CELL_IDS) for python in reversed(ENDS)]
    tested += [f"matrix-{name}-{python}({cell})" for name in ("server", "threads") for python, cell in VERSION_CELLS]
    tested += ["repo", "pages", *(f"outside({name})" for name in OUTSIDE_IN_THE_MATRIX)]
    installs = {f"matrix-install-{python}": () for python in ENDS}
    os.environ[WHOLE] = "1"  # for `repo`, `pages` and the examples; a cell sets its own
    run_stages(session, {**dict.fromkeys(tested, tuple(session.posargs)), **installs}, last="matrix-parity")


@nox.session(name="matrix-install", python=ENDS, reuse_venv=UV.exists())
def matrix_install(session: nox.Session) -> None:
    """Test the README's installs on one Python."""
    check_python(session)
    install_as_readers_do(session, own(session))


@nox.session(name="matrix-core", python=PYTHONS, reuse_venv=UV.exists())
def matrix_core(session: nox.Session) -> None:
    """The core on one Python."""
    install(session, own(session), *CORE, *group("test-core"), exact=True)
    got = check_python(session)
    env = {WHOLE: str(int(whole(session.python)))}
    run_pytest(session, own(session), *CORE_TESTS, report=f"matrix-core-{session.python}", got=got, env=env)


@nox.session(name="matrix-adapter", python=ENDS, reuse_venv=UV.exists())
@nox.parametrize(("adapter", "framework"), CELLS, ids=CELL_IDS)
def matrix_adapter(session: nox.Session, adapter: str, framework: str) -> None:
    """An adapter on one Python with one version of its framework, without the other adapters."""
    supported = ADAPTERS[adapter]
    which = f"=={supported['oldest']}" if framework == "oldest" else f"<{supported['below']}"
    wanted = (*CORE, "-e", f"packages/{adapter}", *group(group_of(adapter)), supported["distribution"] + which)
    install(session, own(session), *wanted, exact=True)
    got = f"{check_python(session)}, {check_framework(session, supported, framework)}"
    cell = f"{session.python}({adapter}-{framework})"
    everything = whole(session.python, framework)
    left_out = () if everything else supported.get("every_commit", ())
    env = {WHOLE: str(int(everything)), **leaves(MATRIX_PARITY / cell)}
    run_pytest(session, own(session), tests_of(adapter), *left_out, report=f"matrix-adapter-{cell}", got=got, env=env)


@nox.session(name="matrix-server", python=ENDS, reuse_venv=UV.exists())
@nox.parametrize("versions", ["lowest", "newest"], ids=["lowest", "newest"])
def matrix_server(session: nox.Session, versions: str) -> None:
    """The server on one Python, with the newest versions of its requirements or with the lowest that it declares."""
    beside = EVERYTHING if whole(session.python, versions) and versions == "newest" else ("-e", "packages/threads")
    wanted = (*beside, "-e", "packages/server[postgres,qdrant]")
    version_cell(session, "server", versions, wanted, SERVER_TESTS)


@nox.session(name="matrix-threads", python=ENDS, reuse_venv=UV.exists())
@nox.parametrize("versions", ["lowest", "newest"], ids=["lowest", "newest"])
def matrix_threads(session: nox.Session, versions: str) -> None:
    """Threads on one Python, with the newest versions of their requirements or with the lowest that they declare."""
    version_cell(session, "threads", versions, ("-e", "packages/threads[postgres]"), ("tests/threads",))


def version_cell(
    session: nox.Session, package: str, versions: str, wanted: tuple[str, ...], tests: tuple[str, ...]
) -> None:
    """Run the tests of a package with these versions of its requirements."""
    if (session.python, versions) not in VERSION_CELLS:
        session.skip(f"Python {session.python} is not tested with the {versions} versions")
    floors = lowest_of(package) if versions == "lowest" else []
    install(session, own(session), *CORE, *wanted, *group(group_of(package)), *floors, exact=True)
    got = ", ".join([check_python(session), *floors])
    report = f"matrix-{package}-{session.python}({versions})"
    env = {WHOLE: str(int(whole(session.python, versions)))}
    run_pytest(session, own(session), *tests, report=report, got=got, env=env)


@nox.session(name="matrix-parity", python=False)
def matrix_parity(session: nox.Session) -> None:
    """Every cell of an adapter decides as the core does: compares what the `matrix-adapter` sessions left."""
    run_pytest(session, shared(session, "core"), "tests/parity", report="matrix-parity", env=leaves(MATRIX_PARITY))


# --- keep it


@nox.session(python=False)
def frameworks(session: nox.Session) -> None:
    """Writes docs/frameworks.md, from what the last matrix has found."""
    session.run(shared(session, "core"), "tools/frameworks.py", *session.posargs, external=True)


@nox.session(python=False)
def shipped_calibration(session: nox.Session) -> None:
    """Fits the calibration that the core ships, to the files of recorded runs that the arguments name."""
    session.run(shared(session, "all"), "tools/shipped_calibration.py", *session.posargs, external=True)


@nox.session(reuse_venv=True)
def lock(session: nox.Session) -> None:
    """Writes constraints.txt: what packages and sessions need, on every Python; --upgrade for newer versions."""
    install(session, own(session), "uv")
    wanted = Path(session.create_tmp()) / "wanted.txt"
    wanted.write_text("\n".join(requirements(GROUPS)) + "\n", encoding="utf-8")
    how = ("--universal", "--python-version", PYTHONS[0], "--no-header", "--no-annotate", "--quiet")
    session.run("uv", "pip", "compile", *how, *session.posargs, str(wanted), "--output-file", str(CONSTRAINTS))
