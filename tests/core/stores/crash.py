"""Kills a process in the middle of an import, again and again, and looks for what it had acknowledged.

    python tests/core/stores/crash.py --rounds 50 --patterns 10000

A child adds batches of 50 patterns to one file and prints a line after each; it is killed after some of them, at a
moment of chance. Then each batch has to be there whole or not at all, and each acknowledged one whole.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from reasonblocks import LocalStore, Pattern

BATCH = 50
LONGEST_S = 0.4
"""Up to how long after its first line a child lives: an import of 10,000 in such batches takes some ten times that."""


def batch(round_: int, number: int) -> list[Pattern]:
    return [
        Pattern(id=f"{round_}-{number}-{at}", tier="e2", fields={"diagnosis": "x"}, exemplars=(f"word{at} lesson",))
        for at in range(BATCH)
    ]


def child(path: str, round_: int, batches: int) -> None:
    store = LocalStore(path)
    for number in range(batches):
        store.add(batch(round_, number))
        print(number, flush=True)


def one_round(path: Path, round_: int, batches: int, chance: random.Random) -> dict[str, int]:
    """What was acknowledged, what is there, and what is wrong."""
    command = [sys.executable, __file__, "--child", str(path), "--rounds", str(round_), "--batches", str(batches)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    first = running.stdout.readline()
    with suppress(subprocess.TimeoutExpired):
        running.wait(timeout=chance.uniform(0, LONGEST_S))
    running.send_signal(signal.SIGKILL)
    said = [first, *running.stdout.readlines()]
    running.wait()
    running.stdout.close()
    acknowledged = {int(line) for line in said if line.endswith("\n")}
    with LocalStore(path) as store:
        there = Counter(int(one.id.split("-")[1]) for one in store.list("x") if one.id.startswith(f"{round_}-"))
    return {
        "round": round_,
        "acknowledged": len(acknowledged),
        "there": len(there),
        "lost": len(acknowledged - set(there)),
        "torn": sum(1 for count in there.values() if count != BATCH),
    }


def rounds(path: Path, count: int, patterns: int, seed: int = 20) -> list[dict[str, int]]:
    chance = random.Random(seed)
    return [one_round(path, number, patterns // BATCH, chance) for number in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--patterns", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.rounds, given.batches)
        return
    with TemporaryDirectory() as folder:
        found = rounds(Path(folder) / "patterns.db", given.rounds, given.patterns)
    keys = ("acknowledged", "there", "lost", "torn")
    print(json.dumps({"rounds": len(found), **{key: sum(one[key] for one in found) for key in keys}}))


if __name__ == "__main__":
    main()
