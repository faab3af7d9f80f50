"""Another process on a file of threads, which does what the lines on its standard input say, and prints each result.

`python -m tests.threads.other_process FILE` answers `ready`; then: `answer CARD WHAT`, `open KEY`, `drain`, `die N`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from reasonblocks_threads import Conflict, Refused
from tests.threads.driver import MARA, Clock, Driver, Hands, Mind


def do(driver: Driver, words: list[str]) -> str:
    match words:
        case ["answer", card, what]:
            answer: Any = what
            try:
                return driver.threads.answer(card, answer, by=MARA).phase.value
            except (Conflict, Refused) as exc:
                return type(exc).__name__
        case ["open", key]:
            return driver.open(key).id
        case ["drain"]:
            return str(driver.drain())
        case ["die", commits]:
            driver.faults.at, driver.faults.really = driver.faults.commits + int(commits), True
            return "soon"
    raise ValueError(words)


def main(file: Path) -> None:
    clock = Clock()
    hands, mind = Hands(clock, journal=file.with_suffix(".journal")), Mind(action="touch")
    with Driver(file, clock=clock, hands=hands, mind=mind) as driver:
        print("ready", flush=True)
        for line in sys.stdin:
            print(do(driver, line.split()), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
