"""The stream sends the changes of runs, continues where its reader was, and ends with the server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from reasonblocks_server.bodies import LIVE_STEP_BYTES
from reasonblocks_server.errors import ApiError, StorageUnavailable
from reasonblocks_server.live import Message, Subscription
from reasonblocks_server.live._live import MAX_OF_ORG
from reasonblocks_server.live._subscription import MAX_UNREAD, ROOM
from reasonblocks_server.routes.stream import event_text, lines_of, number_in
from tests.server.routes.world import Body, Caller, World, finish, running_world, start, step, until

Sent = tuple[str, str, Body]
"""The kind, id and data of an event."""


class Reader:
    """The events of one open stream."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.events = self._read(answer.iter_lines())

    def _read(self, lines: Iterator[str]) -> Iterator[Sent]:
        fields: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(": ")
            if line and name:
                fields[name] = value
            elif "data" in fields:
                yield fields["event"], fields["id"], json.loads(fields["data"])
                fields = {}

    def until(self, kind: str, **wanted: Any) -> Sent:
        """Read up to an event of this kind with these values."""
        for event in self.events:
            if event[0] == kind and all(event[2].get(name) == value for name, value in wanted.items()):
                return event
        raise AssertionError(f"the stream ended before {kind} {wanted}")


@contextmanager
def stream(caller: Caller, last_event_id: str = "", **params: object) -> Iterator[Reader]:
    headers = {"Authorization": f"Bearer {caller.key}", "Last-Event-ID": last_event_id}
    with caller.http.stream("GET", "/v1/monitor/stream", params=params, headers=headers) as answer:  # type: ignore[arg-type]  # any scalar
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Reader(answer)


def test_a_run_is_sent_with_its_steps_and_notes(world: World, caller: Caller) -> None:
    caller.send(start("r"), step("r", 0))
    with stream(caller, run_id="r") as reader:
        assert [next(reader.events)[:2] for _ in range(2)] == [("run", "-1"), ("step", "0")]
        caller.send(step("r", 1))
        assert reader.until("step")[2]["thought"] == "thought 1"
        world.server.storage.runs.takes_notes(caller.org_id, "r", time.time())
        note_id = caller.post("/runs/r/notes", {"text": "Hello."}, 201)["note_id"]
        reader.until("note", note_id=note_id, state="queued", text="Hello.")
        caller.send(step("r", 2, metadata={"note_ids": [note_id]}))
        reader.until("note", note_id=note_id, state="told", told_step=2)
        caller.send(finish("r"))
        reader.until("run", outcome="success", steps=3)


def test_a_reader_continues_where_it_was(caller: Caller) -> None:
    caller.send(start("r"), *[step("r", index) for index in range(4)])
    with stream(caller, run_id="r") as reader:
        _, place, _ = reader.until("step", step_index=1)
    with stream(caller, last_event_id=place, run_id="r") as reader:
        assert reader.until("step")[2]["step_index"] == 2
    with stream(caller, run_id="r", after=2) as reader:
        assert reader.until("step")[2]["step_index"] == 3


def test_a_stream_of_all_runs_has_their_changes(world: World, caller: Caller) -> None:
    mine = world.caller(org=caller.org_id, project="mine")
    stranger = world.caller()
    with stream(caller) as reader, stream(mine) as of_project:
        stranger.send(start("theirs"))
        caller.send(start("other"))
        _, place, _ = reader.until("run")
        mine.send(start("r"))
        assert of_project.until("run")[2]["run_id"] == "r"
        assert reader.until("run")[2]["run_id"] == "r"
    with stream(caller, last_event_id=place) as reader:
        assert reader.until("run")[2]["run_id"] == "r"


def test_many_steps_all_arrive(caller: Caller) -> None:
    """More than fit into the unread messages of a listener."""
    for first in range(0, 450, 150):
        caller.send(*[step("r", index, observation="x" * 900) for index in range(first, first + 150)])
    with stream(caller, run_id="r") as reader:
        found: list[int] = []
        while len(found) < 450:
            found.append(reader.until("step")[2]["step_index"])
    assert found == list(range(450))


def test_a_burst_of_steps_closes_no_stream(caller: Caller) -> None:
    """More than fit into the unread messages of a listener, to one that was up to date."""
    caller.send(start("r"))
    with stream(caller, run_id="r") as reader:
        reader.until("run")
        caller.send(*[step("r", index, observation="x" * 900) for index in range(150)])
        assert [reader.until("step")[2]["step_index"] for _ in range(150)] == list(range(150))


def test_a_large_step_is_shortened(caller: Caller) -> None:
    caller.send(step("r", 0, observation="x" * 300_000, metadata={"fsm_state": "SLOW", "own": ["y" * 9_000]}))
    with stream(caller, run_id="r") as reader:
        _, _, body = reader.until("step")
    assert body["shortened"] is True
    assert body["metadata"] == {"fsm_state": "SLOW", "difficulty": 0.2, "gate_decision": "quiet"}
    assert len(json.dumps(body)) < LIVE_STEP_BYTES


def test_a_stream_continues_when_the_database_is_back(
    world: World, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller.send(start("r"))
    with stream(caller, run_id="r") as reader:
        reader.until("run")
        with monkeypatch.context() as gone:
            gone.setattr(world.server.storage.runs, "page", unavailable)
            caller.send(step("r", 0))
            until(lambda: world.server.live._failing)
        assert reader.until("step")[2]["step_index"] == 0


def unavailable(*given: object, **options: object) -> None:
    raise StorageUnavailable("it is gone")


def test_a_stream_needs_a_key_and_a_run(world: World, caller: Caller) -> None:
    world.caller().send(start("theirs"))
    assert caller("GET", "/monitor/stream?run_id=theirs").status_code == 404
    assert caller("GET", "/monitor/stream?run_id=").status_code == 422
    assert world.caller("ingest")("GET", "/monitor/stream").status_code == 403
    assert world.http.get("/v1/monitor/stream").status_code == 401


def test_a_closed_stream_is_forgotten(world: World, caller: Caller) -> None:
    with stream(caller):
        until(lambda: any(it.org_id == caller.org_id for it in world.server.live._listeners))
    until(lambda: all(it.closed for it in world.server.live._listeners if it.org_id == caller.org_id))


def test_open_streams_end_with_the_server(tmp_path: Path) -> None:
    with running_world(tmp_path) as world, stream(world.caller()) as reader:
        world.server.live.end_streams()
        assert list(reader.events) == []
        with stream(world.caller()) as late:
            assert list(late.events) == []


def message(size: int = 10) -> Message:
    return Message("step", "1", {"t": "x" * size})


def listener(**options: Any) -> Subscription:
    given: dict[str, Any] = {"after": -1, "since": None, "drained": lambda: None, **options}
    return Subscription("org", "r", None, **given)


def test_a_slow_reader_is_closed_at_64_kb() -> None:
    async def unread() -> list[Message]:
        slow = listener()
        for _ in range(10):
            slow.offer(message(MAX_UNREAD // 4))
        assert slow.closed
        return [one async for one in slow]

    assert asyncio.run(unread()) == [message(MAX_UNREAD // 4)] * 3


def test_a_reader_receives_the_steps_that_fit() -> None:
    async def read() -> None:
        drained: list[bool] = []
        slow = listener(drained=lambda: drained.append(True))
        assert slow.has_room()
        slow.offer(message(ROOM))
        assert (slow.has_room(), slow.closed, drained) == (False, False, [])
        await slow.__anext__()
        assert (slow.has_room(), drained) == (True, [True])

    asyncio.run(read())


def test_a_burst_after_a_silence_closes_no_stream() -> None:
    async def read() -> None:
        waits = listener()
        waits._moved -= 60.0  # a minute ago
        waits.offer(message(ROOM))
        assert (waits.has_room(), waits.closed) == (False, False)

    asyncio.run(read())


def test_a_reader_that_has_stopped_reading_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read() -> None:
        slow = listener()
        slow.offer(message(ROOM))
        monkeypatch.setattr("reasonblocks_server.live._subscription.STUCK_SECONDS", 0.0)
        assert not slow.has_room()
        assert slow.closed

    asyncio.run(read())


def test_a_listener_whose_loop_has_ended_is_closed() -> None:
    async def made() -> Subscription:
        return listener()

    left = asyncio.run(made())
    left.offer(message())
    assert left.closed


def test_a_silent_stream_sends_a_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reasonblocks_server.routes.stream.HEARTBEAT_SECONDS", 0.01)

    async def still_valid() -> bool:
        return True

    async def texts() -> list[str]:
        silent = listener()
        lines = lines_of(silent, still_valid)
        found = [await lines.__anext__(), await lines.__anext__()]
        silent.offer(message())
        found.append(await lines.__anext__())
        silent.close()
        return [*found, *[text async for text in lines]]

    assert asyncio.run(texts()) == ["retry: 2000\n\n", ": still here\n\n", event_text(message())]


@pytest.mark.parametrize(
    ("text", "number"), [("3", 3.0), ("-1", -1.0), ("", None), ("nan", None), ("inf", None), ("-2", None), ("x", None)]
)
def test_the_id_of_an_event_is_a_number(text: str, number: float | None) -> None:
    assert number_in(text) == number


def test_no_text_breaks_out_of_its_event() -> None:
    text = event_text(Message("step", "1", {"thought": "a\n\nevent: run\r\ndata: {}\u2028\x85"}))
    assert text.splitlines()[:2] == ["event: step", "id: 1"]
    assert text.count("\n") == 4
    assert "\r" not in text


def test_the_stream_of_a_revoked_key_ends(world: World, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reasonblocks_server.routes.stream.HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr("reasonblocks_server.routes.stream.CHECK_SECONDS", 0.0)
    with stream(caller):
        until(lambda: any(it.org_id == caller.org_id for it in world.server.live._listeners))
        world.server.storage.keys.revoke(caller.org_id, caller.key_id, time.time())
        world.server.auth.forget(caller.key_id)
        until(lambda: all(it.closed for it in world.server.live._listeners if it.org_id == caller.org_id))


def test_an_org_leaves_listeners_for_the_others(world: World, caller: Caller) -> None:
    async def opened(org_id: str, count: int) -> list[Subscription]:
        return [world.server.live.subscribe(org_id) for _ in range(count)]

    async def asked() -> None:
        held = await opened("crowd", MAX_OF_ORG)
        with pytest.raises(ApiError, match="close one") as refused:
            await opened("crowd", 1)
        assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "5"})
        held += await opened(caller.org_id, 1)
        held[0].close()
        held += await opened("crowd", 1)
        for listener in held:
            listener.close()

    asyncio.run(asked())
