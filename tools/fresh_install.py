"""Installs into a fresh environment as in the README, with the pip that this Python bundles, and reports the cost.

`python tools/fresh_install.py REQUIREMENT... [--limit SECONDS] [--run SCRIPT] [--beside REQUIREMENT... --then SCRIPT]`
prints one line and removes the environment again. It fails if pip fails, if pip takes longer than the limit, or if a
script fails there. What is installed beside, after the first script, does not count.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path

LIMIT_S = 300.0
"""The limit of one install: pip's resolver can spend an hour on requirements that conflict."""
RUN_LIMIT_S = 120.0
NOT_A_READERS = re.compile(r"PYTHON|PIP_(BUILD_)?CONSTRAINT|VIRTUAL_ENV|QDRANT_|REASONBLOCKS_")
"""The caller's variables that would change the install or the script."""
LAST_LINES = 12
"""How many lines of output are shown after a failure."""


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--limit", type=float, default=LIMIT_S, metavar="SECONDS", help="for pip, instead of %(default)s"
    )
    parser.add_argument("--run", type=Path, metavar="SCRIPT", help="run with what was installed")
    parser.add_argument("--beside", nargs="+", default=[], metavar="REQUIREMENT", help="install it for the next script")
    parser.add_argument("--then", type=Path, metavar="SCRIPT", help="run with what was installed beside")
    parser.add_argument("wanted", nargs="+", metavar="REQUIREMENT")
    arguments = parser.parse_args(given)
    with tempfile.TemporaryDirectory(prefix="fresh-install-") as folder:
        try:
            print(installed(Path(folder), arguments.wanted, arguments.limit), flush=True)
            if arguments.run:
                run(Path(folder), arguments.run.resolve())
            if arguments.beside:
                pip_install(Path(folder), arguments.beside, arguments.limit)
            if arguments.then:
                run(Path(folder), arguments.then.resolve())
        except Failed as failed:
            print(f"Python {platform.python_version()}: {' '.join(arguments.wanted)}: {failed}", file=sys.stderr)
            return 1
    return 0


class Failed(Exception):
    """A command failed in the fresh environment; the message describes it."""


def installed(folder: Path, wanted: Sequence[str], limit: float) -> str:
    """Install, and return one line: Python, pip, requirements, seconds, MB and number of packages."""
    call("making the environment", [sys.executable, "-m", "venv", str(folder / "env")], RUN_LIMIT_S)
    pip_version, (size, packages) = bundled_pip(folder), weighed(folder)
    began = time.monotonic()
    pip_install(folder, wanted, limit)
    seconds = time.monotonic() - began
    new_size, new_packages = weighed(folder)
    return (
        f"Python {platform.python_version()}, pip {pip_version}, {' '.join(wanted)}: "
        f"{seconds:.0f} s, {(new_size - size) / 1e6:.0f} MB, {new_packages - packages} packages"
    )


def pip_install(folder: Path, wanted: Sequence[str], limit: float) -> None:
    call(f"pip {bundled_pip(folder)}", [python_of(folder), "-m", "pip", "install", "--quiet", *wanted], limit)


def run(folder: Path, script: Path) -> None:
    """Run the script outside the clone: it can import the modules beside it and installed packages."""
    call(script.name, [python_of(folder), "-W", "error", str(script)], RUN_LIMIT_S, cwd=folder)


def python_of(folder: Path) -> str:
    return str(folder / "env/bin/python")


def site_packages(folder: Path) -> Path:
    (found,) = (folder / "env/lib").glob("python*/site-packages")
    return found


def bundled_pip(folder: Path) -> str:
    found = distributions(name="pip", path=[str(site_packages(folder))])
    return next(one.version for one in found)


def weighed(folder: Path) -> tuple[int, int]:
    """Return the size of site-packages in bytes, and its number of distributions."""
    site = site_packages(folder)
    size = sum(path.lstat().st_size for path in site.rglob("*") if not path.is_dir())
    return size, len(list(distributions(path=[str(site)])))


def call(what: str, command: Sequence[str], limit: float, cwd: Path | None = None) -> None:
    """Run a command. Raises `Failed` with the last lines of its output."""
    env = {name: value for name, value in os.environ.items() if not NOT_A_READERS.match(name)}
    env |= {"REASONBLOCKS_STRICT": "1", "REASONBLOCKS_HOME": "home"}
    with subprocess.Popen(
        command, cwd=cwd, env=env, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        try:
            said, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired as expired:
            raise Failed(f"{what} has not ended within {limit:g} s") from expired
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and its children: pip builds in other processes
    if process.returncode:
        last = "\n".join(said.strip().splitlines()[-LAST_LINES:])
        raise Failed(f"{what} failed ({process.returncode}):\n{last}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
