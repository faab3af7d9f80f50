"""Locks files, so that runs take turns: one that has to wait names the others on stderr.

`./dev` calls it with the name of its session and its process id, and with the locked file as stdin.
"""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress

__all__ = ["take"]


def take(lock: int, name: str, process: int, *, shared: bool = False) -> None:
    """Lock the open file `lock` for a process that runs the session `name`, and list it in the file.

    `shared`: beside others that share the lock.
    """
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        others = ", ".join(f"{other} (process {id})" for id, other in running(lock).items() if id != process)
        print(f"dev: {name} waits for {others or 'another run'}", file=sys.stderr, flush=True)
        fcntl.flock(lock, how)
    listed = {**running(lock), process: name} if shared else {process: name}
    os.ftruncate(lock, 0)
    os.pwrite(lock, "".join(f"{id} {other}\n" for id, other in listed.items()).encode(), 0)


def running(lock: int) -> dict[int, str]:
    """Return the names of the listed sessions that still run, by their process ids."""
    found = {}
    for line in os.pread(lock, 65_536, 0).decode().splitlines():
        id, _, name = line.partition(" ")
        with suppress(ValueError, ProcessLookupError):
            with suppress(PermissionError):  # it runs, as another user
                os.kill(int(id), 0)
            found[int(id)] = name
    return found


if __name__ == "__main__":
    take(sys.stdin.fileno(), sys.argv[1], int(sys.argv[2]))
