"""The project's commands: `./dev NAME [ARGS]` runs the session NAME."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import nox
from packaging.specifiers import SpecifierSet

sys.path.append(str(Path(__file__).parent / "tools"))
import nox_support as support
from cells import ADAPTERS, CELLS, ENDS, PYTHONS, Cell
from nox_support import CORE, PROJECTS, ROOT, editable, group, group_of, install, own, run_pytest, shared, tests_of

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.sessions = ["tests"]

OUTSIDE = sorted(path.parent.name for path in ROOT.glob("examples/*/pyproject.toml"))
"""Adapters as somebody outside would write them: distributions of their own under examples/."""

# --- see it work


def run_example(session: nox.Session, python: str, script: str) -> None:
    """Run a script in the caller's folder with the session's arguments."""
    session.chdir(os.environ.get("DEV_CWD", "."))
    session.run(python, str(ROOT / script), *session.posargs, external=True)


@nox.session(reuse_venv=True)
def demo(session: nox.Session) -> None:
    """A scripted agent on a broken repository, plain and steered; with FILES: your own recorded runs replayed."""
    install(session, own(session), *editable("core", "workbench", "langchain"))
    run_example(session, own(session), "examples/demo.py")


@nox.session(name="demo-threads", reuse_venv=True)
def demo_threads(session: nox.Session) -> None:
    """A stuck agent that is handed over to a person, and goes on with the answer; with --ask, you are the person."""
    install(session, own(session), *editable("core", "workbench", "langchain", "threads"))
    run_example(session, own(session), "examples/threads_handover.py")


@nox.session(python=False)
def serve(session: nox.Session) -> None:
    """Start the server with the demo's runs and a live one, until Ctrl-C. Arguments go to `reasonblocks serve`."""
    run_example(session, shared(session, "serve"), "examples/team_server.py")


NEED_A_MODEL = ("outcome", "memory_second_run")
"""Benchmarks that run only if they are named, in the environment `outcome`."""


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

CORE_TESTS = ["tests/core", "tests/parity", "--ignore=tests/parity/test_adapters.py"]
WORKBENCH_TESTS = ["tests/workbench", "tests/testing"]
SERVER_TESTS = ["tests/server", "--ignore=tests/server/ui"]
REPO_TESTS = [
    "tests/repo", "tests/outcome",
    # tests of the workbench that skip a part where LangChain is missing, as in the environment `core`
    "tests/workbench/cli/test_recorded_files.py", "tests/workbench/cli/test_written.py",
    "tests/workbench/traces/test_langchain.py", "tests/workbench/traces/test_langsmith.py",
]  # fmt: skip
PAGE_TESTS = ["tests/report", "tests/server/ui"]
PARTS = {
    "core": ("core", CORE_TESTS, "The core, with no framework installed."),
    "workbench": ("core", WORKBENCH_TESTS, "The workbench and the test kit, with no framework installed."),
    "server": ("all", SERVER_TESTS, "The server, its storage and its commands; `pages` tests its dashboard."),
    "threads": ("all", ["tests/threads"], "The matters that a person decides; `server` and `pages` test their pages."),
    "repo": ("all", REPO_TESTS, "The repository's own rules, and what needs a framework beside the core."),
    "pages": ("all", PAGE_TESTS, "The pages of reports and of the dashboard; without a browser, they are skipped."),
    "examples": ("all", ["tests/examples"], "The examples, on the providers' own clients and on the frameworks."),
    "outcome": ("outcome", ["tests/outcome"], "The tests of `./dev bench outcome`, with the worlds installed."),
}
"""Sessions that run tests in a shared environment: its name, the tests, and the session's description."""

for _name, (_environment, _tests, _description) in PARTS.items():

    @nox.session(name=_name, python=False)
    def part(session: nox.Session, environment: str = _environment, tests: Sequence[str] = _tests) -> None:
        run_pytest(session, shared(session, environment), *tests)

    part.__doc__ = _description


FIRST = (
    "lint", "layers", "adapters(openai-agents)", "core", "wheel", "adapters(claude-agent)", "server",
    "adapters(langchain)", "workbench", "types", "threads", "repo",
)  # fmt: skip
"""The stages that start first: the quick checks, then the longest, so that both lanes end at about the same time."""
OUTSIDE_IN_THE_MATRIX = ("pydantic_ai_adapter",)
"""Adapters under examples/ that take almost a minute; the template is tested at every commit."""


def shorter_of(part: str) -> list[str]:
    """Return what pytest gets at every commit so that the tests of a part are shorter."""
    if part in ("core", "workbench"):  # tests of other tests, which take half a minute
        return ["--ignore=tests/testing/test_sabotage.py"]
    return [*ADAPTERS.get(part, {}).get("every_commit", [])]


@nox.session(python=False)
def tests(session: nox.Session) -> None:
    """All that follows but `parity` and what only the matrix runs, two sessions at a time, and a closing line.

    Arguments go to pytest.
    """
    stages = {name: [*shorter_of(name), *session.posargs] for name in PARTS if name != "outcome"}
    for name in ADAPTERS:
        parity = f"--ignore={tests_of(name)}/test_parity.py"
        stages[f"adapters({name})"] = [parity, *shorter_of(name), *session.posargs]
    stages |= {f"outside({name})": session.posargs for name in OUTSIDE if name not in OUTSIDE_IN_THE_MATRIX}
    stages |= {"lint": [], "layers": [], "types": [], "wheel": ["core"]}
    support.run_stages(session, {name: stages[name] for name in dict.fromkeys([*FIRST, *stages])})


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
    sources = os.pathsep.join(str(ROOT / "packages" / package / "src") for package in PROJECTS)
    session.run(str(program), "--no-logo", *session.posargs, env={"PYTHONPATH": sources}, external=True)


@nox.session(python=False)
def types(session: nox.Session) -> None:
    """mypy, strict, on everything but what `outside` checks."""
    elsewhere = f"^examples/({'|'.join(OUTSIDE)})/"  # their frameworks are installed in the sessions `outside`
    checked = session.posargs or ("packages", "tests", "examples", "benchmarks", "tools", "noxfile.py")
    session.run(shared(session, "all"), "-m", "mypy", "--exclude", elsewhere, *checked, external=True)


@nox.session(python=False)
@nox.parametrize("adapter", list(ADAPTERS), ids=list(ADAPTERS))
def adapters(session: nox.Session, adapter: str) -> None:
    """An adapter, on a real agent of its framework."""
    run_pytest(session, shared(session, "all"), tests_of(adapter))


@nox.session(python=False)
def parity(session: nox.Session) -> None:
    """Every adapter decides as the core does, entry by entry: runs the adapters, then compares with the core."""
    folder = ROOT / ".nox/parity-files"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ADAPTERS:
        test = f"{tests_of(name)}/test_parity.py"
        run_pytest(session, shared(session, "all"), test, REASONBLOCKS_PARITY=str(folder))
    run_pytest(session, shared(session, "core"), "tests/parity", REASONBLOCKS_PARITY=str(folder))


@nox.session(reuse_venv=True)
@nox.parametrize("example", OUTSIDE, ids=OUTSIDE)
def outside(session: nox.Session, example: str) -> None:
    """An adapter written from outside, in an environment of its own: its types, its tests, the whole suite."""
    project = nox.project.load_toml(ROOT / "examples" / example / "pyproject.toml")["project"]
    supported = SpecifierSet(project["requires-python"])
    if not supported.contains(platform.python_version()):
        session.skip(f"{project['name']} needs Python {supported}, this is {platform.python_version()}")
    oldest = next(python for python in PYTHONS if supported.contains(python))
    install(session, own(session), *CORE, "-e", f"examples/{example}", *group(group_of(example)))
    cache = f"--cache-dir=.mypy_cache/{example}"  # other versions are installed here than for `types`
    session.run("mypy", cache, "--python-version", oldest, f"examples/{example}")
    run_pytest(session, own(session), f"examples/{example}")


# --- wheels


@nox.session(python=False)
def wheels(session: nox.Session) -> None:
    """The wheels of all packages, into dist/; twine checks what an index would show of them."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    python = shared(session, "lint")
    paths = support.build_wheels(session, python, ROOT / "dist").values()
    session.run(python, "-m", "twine", "check", "--strict", *paths, external=True)
    for path in paths:
        print(Path(path).relative_to(ROOT))


@nox.session(python=False)
def wheel(session: nox.Session) -> None:
    """Test the README's installs, each in a fresh environment; then the built wheels, without access to the source.

    Arguments are the packages whose installs are tested, all by default.
    """
    support.install_as_readers_do(session, sys.executable, session.posargs or PROJECTS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        support.try_wheels(session, support.build_wheels(session, shared(session, "lint"), folder / "dist"), folder)


# --- test it on every Python and framework

MATRIX_PARITY = ROOT / ".nox/parity-files-matrix"


@nox.session(python=False)
def matrix(session: nox.Session) -> None:
    """Test every Python and both ends of the frameworks' versions, two cells at a time; a table of them comes last."""
    shutil.rmtree(MATRIX_PARITY, ignore_errors=True)
    os.environ["REASONBLOCKS_WHOLE"] = "1"  # adds the tests that take minutes (tests/whole.py)
    names = [cell.name for cell in CELLS if cell.whole]
    names += [*(f"outside({name})" for name in OUTSIDE_IN_THE_MATRIX), "repo", "pages"]
    names += [cell.name for cell in CELLS if not cell.whole]
    stages = {name: [] if name.startswith("matrix-install") else session.posargs for name in names}
    support.run_stages(session, stages, {"matrix-parity": session.posargs})


for _cell in CELLS:

    @nox.session(name=_cell.name, python=_cell.python, reuse_venv=support.UV.exists())
    def run_cell(session: nox.Session, cell: Cell = _cell) -> None:
        """One cell of `matrix`."""
        if cell.part == "install":
            support.check_versions(session, cell)
            support.install_as_readers_do(session, own(session), PROJECTS if cell.python in ENDS else ["core"])
            return
        install(session, own(session), *wanted_by(cell), newest=True)
        several = {"core": [*CORE_TESTS, *WORKBENCH_TESTS], "server": SERVER_TESTS}
        tests = [*several.get(cell.part, [tests_of(cell.part)]), *([] if cell.whole else shorter_of(cell.part))]
        env = {"REASONBLOCKS_WHOLE": str(int(cell.whole))}
        if cell.part in ADAPTERS:
            env["REASONBLOCKS_PARITY"] = str(MATRIX_PARITY / cell.name)
        run_pytest(session, own(session), *tests, got=support.check_versions(session, cell), **env)


def wanted_by(cell: Cell) -> tuple[str, ...]:
    """Return what is installed for a cell."""
    if cell.part == "core":
        return (*CORE, *group("test-core"))
    extra, beside = "" if cell.part in ADAPTERS else "[postgres]", CORE
    if cell == Cell(part="server", python=ENDS[1], whole=True):
        extra, beside = "[postgres,qdrant]", (*support.EVERYTHING, *group("test-core"))
    elif cell.part == "server":
        beside = (*CORE, *editable("threads"))
    floors = support.floors_of(cell.part) if cell.versions == "oldest" else ()
    return (*beside, *editable(f"{cell.part}{extra}"), *group(group_of(cell.part)), *floors)


@nox.session(name="matrix-parity", python=False)
def matrix_parity(session: nox.Session) -> None:
    """Every cell of an adapter decides as the core does: compares what the cells left."""
    run_pytest(session, shared(session, "core"), "tests/parity", REASONBLOCKS_PARITY=str(MATRIX_PARITY))


# --- keep it


@nox.session(python=False)
def frameworks(session: nox.Session) -> None:
    """Writes docs/frameworks.md, from what the last matrix has found."""
    session.run(shared(session, "core"), "tools/frameworks.py", *session.posargs, external=True)


@nox.session(reuse_venv=True)
def lock(session: nox.Session) -> None:
    """Writes constraints.txt: what packages and sessions need, on every Python; --upgrade for newer versions."""
    install(session, own(session), "uv")
    needs = [str(need) for package in PROJECTS for need in support.requirements(package, extras=True)]
    wanted = Path(session.create_tmp()) / "wanted.txt"
    wanted.write_text("\n".join(sorted({*group(), *needs})) + "\n", encoding="utf-8")
    how = ("--universal", "--python-version", PYTHONS[0], "--no-header", "--no-annotate", "--quiet")
    session.run("uv", "pip", "compile", *how, *session.posargs, str(wanted), "--output-file", str(support.CONSTRAINTS))
