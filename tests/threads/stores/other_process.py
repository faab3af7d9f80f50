"""Appends to threads from a process of its own: `python other_process.py WHAT DATABASE NAME COUNT`.

It prints "ready", waits for a line, and then prints a line for each transaction that the store acknowledged.
"""

from __future__ import annotations

import sys

from reasonblocks_threads.errors import Conflict
from reasonblocks_threads.ports import Store
from reasonblocks_threads.stores import open_store
from reasonblocks_threads.values import Letter, Rows
from tests.threads.stores.lines import claimed, noting, opened, work


def race(store: Store, name: str, count: int) -> None:
    """Append to the thread of the key "shared" if no other appended to the version that was seen."""
    with store.read() as reading:
        id = reading.by_key("default", "shared")
        assert id is not None
    for version in range(1, count + 1):
        while True:
            with store.read() as reading:
                head = reading.head(id)
            assert head is not None
            if head.version >= version:
                break
        try:
            if head.version == version:
                noting(head, text=name, command=f"{name}:{version}").put(store)
                print(f"won {version}", flush=True)
        except Conflict:
            pass


def claim(store: Store, name: str, count: int) -> None:
    """Claim until nothing is left."""
    while (found := claimed(store, 1.0, lease=name)) is not None:
        print(f"claimed {found.id}", flush=True)


def write(store: Store, name: str, count: int) -> None:
    """Open a thread of its own and append to it; every transaction has an event, a work and a letter."""
    thread = opened(store, name)
    for number in range(count):
        lines = noting(thread, 2)
        with store.write([thread.id]) as writing:
            rows = Rows(cancel=("begin",), works=(work("begin", data={"version": lines.after.version}),))
            writing.append(thread, lines.after, lines.events, rows, lines.known())
            writing.add_letter(Letter(id=f"{name}:{number}", thread_id=thread.id, run_id=name, text="t", at=1.0))
        thread = lines.after
        print(f"wrote {thread.version}", flush=True)


def look(store: Store, name: str, count: int) -> None:
    """Read, write and close, again and again, as one that comes and goes."""
    for number in range(count):
        thread = opened(store, f"{name}:{number}")
        store.close()
        with store.read() as reading:
            assert reading.head(thread.id) == thread
        store.waiting(name)
        store.close()
        print(thread.id, flush=True)


def main(what: str, database: str, name: str, count: str) -> None:
    store = open_store(database)
    print("ready", flush=True)
    sys.stdin.readline()
    {"race": race, "claim": claim, "write": write, "look": look}[what](store, name, int(count))
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
