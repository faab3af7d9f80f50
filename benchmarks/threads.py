"""Measures threads beside bare SQLite: a submitted command, events per second, the fold, the list, the mailbox."""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reasonblocks_threads import Actor, Ask, Budget, Cause, Inferred, Policy, Proposal, Stage, Threads
from reasonblocks_threads.log import fold_all

EVENTS = 3
"""Events of the measured command: a proposal, the judgement of its gates, and the change of phase."""
LONG = 10_000
"""Events of a long thread."""
WITHOUT_END = Policy(budget=Budget(calls=10**9, tokens=10**9, usd=1e9))
MARA = Actor.person("mara")
BARE = """
CREATE TABLE thread (id TEXT PRIMARY KEY, org TEXT, title TEXT, phase TEXT, stage TEXT, version INT, run TEXT,
  opened REAL, changed REAL, head TEXT);
CREATE TABLE event (position INTEGER PRIMARY KEY, thread TEXT, seq INT, kind TEXT, data TEXT, UNIQUE (thread, seq));
CREATE TABLE card (id TEXT PRIMARY KEY, thread TEXT, state TEXT, body TEXT);
CREATE TABLE work (id TEXT PRIMARY KEY, thread TEXT, kind TEXT, due REAL, lease TEXT);
"""


class Scripted:
    """An inferencer that always proposes the same action, which needs a person."""

    name = "scripted"

    def infer(self, ask: Ask) -> Inferred:
        if ask.stage is Stage.ACTION:
            return Inferred(proposals=(Proposal.of_action("hand_off", {"to": "the team"}, confidence=0.9),))
        make = Proposal.of_intent if ask.stage is Stage.INTENT else Proposal.of_context
        return Inferred(proposals=(make("Something that takes a few words to say.", confidence=0.9),))


def opened(threads: Threads, key: str) -> str:
    """Return a new thread that waits for a person's consent."""
    cause = Cause(kind="proposal", key=key, title=f"Something to decide, {key}")
    id = threads.open(cause).id
    threads.drain()
    return id


def round_trip(threads: Threads, id: str) -> None:
    """Let a person ask for another proposal, and make it: 7 events in 3 commands, one of which writes 3."""
    with threads._engine.store.read() as reading:
        card = reading.open_card(id)
    assert card is not None
    threads.answer(card, "redirect", by=MARA, stage="action")
    threads.drain()


@contextmanager
def timed_submits(threads: Threads) -> Iterator[list[float]]:
    """Yield the seconds of each command that writes `EVENTS` events, while the block lasts."""
    engine: Any = threads._engine
    submit, seconds = engine.submit, list[float]()

    def timed(*args: Any, **kwargs: Any) -> Any:
        begun = time.perf_counter()
        submitted = submit(*args, **kwargs)
        taken = time.perf_counter() - begun
        if len(submitted.events) == EVENTS:
            seconds.append(taken)
        return submitted

    engine.submit = timed
    try:
        yield seconds
    finally:
        del engine.submit


def quantiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Return median and 95th percentile in ms."""
    return statistics.median(seconds) * 1e3, statistics.quantiles(seconds, n=20)[18] * 1e3


def bare_commits(folder: Path, number: int) -> list[float]:
    """Return the seconds of transactions of bare SQLite with the rows of such a command."""
    db = sqlite3.connect(folder / "bare.db", isolation_level=None)
    for name in ("journal_mode=WAL", "synchronous=FULL"):
        db.execute(f"PRAGMA {name}")
    db.executescript(BARE)
    db.execute("INSERT INTO thread VALUES ('t', 'o', 'title', 'p', 's', 0, '', 0, 0, '')")
    seconds, head, data = [], "h" * 1_500, "d" * 300
    for at in range(number):
        begun = time.perf_counter()
        db.execute("BEGIN IMMEDIATE")
        db.execute("SELECT head FROM thread WHERE id='t'").fetchone()
        rows = [(None, "t", at * EVENTS + each, "kind", data) for each in range(EVENTS)]
        db.executemany("INSERT INTO event VALUES (?,?,?,?,?)", rows)
        db.execute("UPDATE thread SET version=?, head=? WHERE id='t'", (at, head))
        db.execute("UPDATE card SET state='withdrawn' WHERE thread='t' AND state='open'")
        db.execute("DELETE FROM work WHERE thread='t'")
        db.execute("INSERT INTO card VALUES (?, 't', 'open', ?)", (f"c{at}", head))
        db.execute("INSERT INTO work VALUES (?, 't', 'timeout', 0, NULL)", (f"w{at}",))
        db.execute("COMMIT")
        seconds.append(time.perf_counter() - begun)
    db.close()
    return seconds


def submits(database: str | Path, folder: Path, rounds: int) -> Iterator[dict[str, object]]:
    """Time commands on short and on long threads in turn, and bare transactions beside them."""
    with Threads(database, policy=WITHOUT_END, inferencer=Scripted()) as threads:
        long, short = opened(threads, "long"), [opened(threads, f"short-{at}") for at in range(rounds)]
        while threads.get(long).version < LONG:
            round_trip(threads, long)
        short_s, long_s = list[float](), list[float]()
        for id in short:
            with timed_submits(threads) as found:
                round_trip(threads, id)
            short_s += found
            with timed_submits(threads) as found:
                round_trip(threads, long)
            long_s += found
        events = threads.log(long, limit=2 * LONG)
    bare = quantiles(bare_commits(folder, rounds))
    (near, near_95), (far, far_95) = quantiles(short_s), quantiles(long_s)
    yield {
        "measure": "submit of 3 events", "p50_ms": round(near, 3), "p95_ms": round(near_95, 3),
        "bare_p50_ms": round(bare[0], 3), "bare_p95_ms": round(bare[1], 3),
        "at_event_10000_p50_ms": round(far, 3), "at_event_10000_p95_ms": round(far_95, 3),
        "at_10000_to_at_10": round(far / near, 3),
    }  # fmt: skip
    yield folds(events)


def folds(events: Sequence[Any]) -> dict[str, object]:
    def fold(number: int) -> float:
        return best(lambda: fold_all(events[:number]))

    whole, part = fold(LONG), fold(LONG // 10)
    return {"measure": "fold", "events": LONG, "ms": round(whole * 1e3, 1), "to_1000": round(whole / part / 10, 2)}


def best(call: Callable[[], object], times: int = 5) -> float:
    """Return the shortest of some times, in seconds."""

    def once() -> float:
        begun = time.perf_counter()
        call()
        return time.perf_counter() - begun

    return min(once() for _ in range(times))


def lists(folder: Path, number: int = 1_000) -> Iterator[dict[str, object]]:
    """Time the list of many open threads, and the mailbox with nothing new and with a letter."""
    with Threads(folder / "lists.db", policy=WITHOUT_END, inferencer=Scripted()) as threads:
        for at in range(number):
            opened(threads, f"{at}")
        listed = best(lambda: threads.list(limit=number), 20)
        cards = best(lambda: threads.cards(limit=number), 20)
        assert len(threads.list(limit=number)) == number
        yield {
            "measure": f"list of {number:,} open threads", "ms": round(listed * 1e3, 2),
            "cards_ms": round(cards * 1e3, 2),
        }  # fmt: skip
        yield mailboxes(threads)


def mailboxes(threads: Threads) -> dict[str, object]:
    box = threads.mailbox()
    box.waiting("run-0")
    nothing = best(lambda: [box.waiting("run-0") for _ in range(1_000)]) / 1_000
    letters = []
    for at in range(50):
        run_id = f"run-{at + 1}"
        proposal = Proposal.of_action("inject_guidance", {"text": "Read the tests first."}, confidence=0.9)
        cause = Cause(kind="proposal", key=run_id, title="Guide the run", run_id=run_id)
        threads.open(cause, proposals=[proposal], run="live")
        threads.drain()
        (card,) = threads.cards(run_id=run_id)
        threads.answer(card, "approve", by=MARA)
        threads.drain()
        begun = time.perf_counter()
        (note,) = box.waiting(run_id)
        letters.append(time.perf_counter() - begun)
        assert note.text
    median = statistics.median(letters)
    return {"measure": "mailbox", "nothing_us": round(nothing * 1e6, 1), "letter_us": round(median * 1e6)}


def rates(database: str, seconds: float) -> Iterator[dict[str, object]]:
    """Count the events that one process and four processes write in some seconds."""
    for number in (1, 4):
        call = [sys.executable, __file__, "--writer", database, "--seconds", str(seconds)]
        writers = [
            subprocess.Popen([*call, "--name", f"{number}-{at}"], stdout=subprocess.PIPE, text=True)
            for at in range(number)
        ]
        found = [json.loads(writer.communicate()[0]) for writer in writers]
        yield {
            "measure": "events per second", "processes": number,
            "events_per_second": round(sum(each["events"] / each["seconds"] for each in found)),
            "unavailable": sum(each["unavailable"] for each in found),
        }  # fmt: skip


def write(database: str, name: str, seconds: float) -> dict[str, object]:
    """Write for some seconds and return the number of events."""
    from reasonblocks_threads import StoreUnavailable

    with Threads(database, policy=WITHOUT_END, inferencer=Scripted(), org_id=name) as threads:
        ids = [opened(threads, f"{name}-{at}") for at in range(8)]
        before = sum(threads.get(id).version for id in ids)
        begun, at, unavailable = time.perf_counter(), 0, 0
        while time.perf_counter() - begun < seconds:
            try:
                round_trip(threads, ids[at % len(ids)])
            except StoreUnavailable:
                unavailable += 1
            at += 1
        taken = time.perf_counter() - begun
        events = sum(threads.get(id).version for id in ids) - before
    return {"events": events, "seconds": taken, "unavailable": unavailable}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--rounds", type=int, default=300, help="measured commands (default 300)")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds of each rate (default 5)")
    parser.add_argument("--database-url", help="an empty database postgresql://..., instead of SQLite")
    parser.add_argument("--writer", help=argparse.SUPPRESS)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.writer:
        print(json.dumps(write(given.writer, given.name, given.seconds)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = given.database_url or folder / "submits.db"
        rows = [
            submits(database, folder, given.rounds),
            rates(str(given.database_url or folder / "rates.db"), given.seconds),
        ]
        for measure in [*rows, *([] if given.database_url else [lists(folder)])]:
            for row in measure:
                text = json.dumps(row) if given.json else "\n".join(f"{key:24}{value}" for key, value in row.items())
                print(text, flush=True)


if __name__ == "__main__":
    main()
