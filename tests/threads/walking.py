"""Walks a golden walk again and again, killed at each of its commits in turn, and continued by another process.

`python -m tests.threads.walking all W1 W2` forks a process for each try, kills it with SIGKILL before and after each
commit, and forks another one that goes on. Prints a JSON object for each walk: the kills, and those with another end.
With `half` instead of `all` the kills are before one commit and after the next.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from reasonblocks_threads.engine.described import mask_text
from tests.threads.checks import check_rest
from tests.threads.driver import Clock, Driver, Hands
from tests.threads.faults import Faults, When, quick_folder
from tests.threads.model import Replay
from tests.threads.walks import WALKS, Walker

LATER_S = 1.0
"""The clock of the second process, after that of the first."""


def in_child(do: Any) -> int:
    """Run `do` in a forked process. Return its wait status: 0 for an end without error."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            do()
            code = 0
        except BaseException:  # noqa: BLE001 - the forked process must not return into its parent's code
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def walk(name: str, file: Path, *, faults: Faults | None = None, after: float = 0.0) -> None:
    """Walk, or go on with a walk, and check that it ends as it must."""
    clock = Clock()
    clock.advance(after)
    journal = file.with_suffix(".journal")
    with Driver(file, clock=clock, hands=Hands(clock, journal=journal), faults=faults) as driver:
        matter = Walker(driver, WALKS[name]).go()
        assert matter.phase == WALKS[name].moves[-1][1]
        replay: Replay = driver.replayed()
        if matter.ended:
            driver.settle()
            check_rest(driver, replay)
        if faults is not None:
            file.with_suffix(".commits").write_text(str(faults.commits))
    ran = [line.split()[1] for line in journal.read_text().splitlines()] if journal.exists() else []
    if WALKS[name].action in ("touch", "ship", "check", "plain"):
        assert len(ran) == len({*ran}), f"what is not idempotent ran twice: {ran}"


def kill_everywhere(name: str, folder: Path, *, half: bool) -> dict[str, Any]:
    """Kill the walk before and after each of its commits, and let another process go on."""
    plain = folder / f"{name}.db"
    if in_child(lambda: walk(name, plain, faults=Faults())):
        return {"walk": name, "kills": 0, "failed": ["without a kill"]}
    commits, failed, kills = int(plain.with_suffix(".commits").read_text()), [], 0
    cases: list[tuple[int, When]] = [(n, when) for n in range(1, commits + 1) for when in ("before", "after")]
    if half:
        cases = [(n, "before" if n % 2 else "after") for n in range(1, commits + 1)]
    for at, when in cases:
        file = folder / f"{name}-{at}-{when}.db"
        faults = Faults(at=at, when=when, really=True)
        status = in_child(lambda file=file, faults=faults: walk(name, file, faults=faults))
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            failed.append(f"{when} {at}: not killed, {status}")
        elif in_child(lambda file=file: walk(name, file, after=LATER_S)):
            failed.append(f"{when} {at}")
        kills += 1
        for rest in folder.glob(f"{name}-{at}-{when}*"):
            rest.unlink()
    return {"walk": name, "commits": commits, "kills": kills, "failed": failed}


if __name__ == "__main__":
    mask_text("the first text imports what recognises secrets, which every forked process would do again")
    with quick_folder() as folder:
        for name in sys.argv[2:]:
            print(json.dumps(kill_everywhere(name, folder, half=sys.argv[1] == "half")), flush=True)
