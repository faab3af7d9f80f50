"""Connections belong to a process: a fork makes its own, and no exit waits for a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest

from reasonblocks import HttpSink
from reasonblocks.backends.http import Ask, Exchange, address_of
from reasonblocks.backends.http._connections import IDLE_SECONDS, _Connection, pools
from reasonblocks.exceptions import ExtraMissing
from reasonblocks_testing.rb_api import Hang, ScriptedRbApi
from tests.core.http.world import EVALUATE, Silent, at, client, gates, run
from tests.whole import in_whole

EXIT_MOST = 2.0
"""Seconds from the end of a program to that of its process: one for the sinks, the rest for a busy machine."""


def process(program: str, **variables: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """The process once it ended, and the seconds from the end of its program to its own."""
    program = textwrap.dedent(program) + "\nimport time\nprint(time.time())"
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program],
        env={**os.environ, **variables}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    ended = time.time()
    assert done.returncode == 0, done.stderr
    return done, ended - float(done.stdout.split()[-1])


RUN = """
    from reasonblocks import ReasonBlocks, Step, StepInput, StepOutcome
    rb = ReasonBlocks()
    session = rb.session(run_id="r")
    for number in range(4):
        decision = session.begin_step(StepInput(completed=Step(thought="hm") if number else None))
        session.end_step(decision, StepOutcome())
"""


def test_a_program_that_closes_nothing_delivers_its_events(api: ScriptedRbApi) -> None:
    done, seconds = process(RUN, REASONBLOCKS_BASE_URL=api.url, REASONBLOCKS_API_KEY=api.key)
    assert seconds < EXIT_MOST
    assert done.stderr == ""
    assert [event["event"] for event in api.events] == ["run_start", *["step"] * 4, "run_finish"]
    assert len(at(api, EVALUATE)) == 3


def test_no_exit_waits_for_a_server_that_hangs(api: ScriptedRbApi) -> None:
    api.misbehave(Hang())
    _, seconds = process(RUN, REASONBLOCKS_BASE_URL=api.url, REASONBLOCKS_API_KEY=api.key)
    assert seconds < EXIT_MOST


def test_no_exit_waits_for_a_server_that_is_not_there() -> None:
    _, seconds = process(RUN, REASONBLOCKS_BASE_URL="http://127.0.0.1:9")
    assert seconds < EXIT_MOST


@in_whole
def test_no_exit_waits_for_a_name_that_does_not_resolve() -> None:
    program = f"""
    import socket, threading
    socket.getaddrinfo = lambda *given, **named: threading.Event().wait()
    {RUN}"""
    _, seconds = process(program, REASONBLOCKS_BASE_URL="http://somewhere.localhost:9")
    assert seconds < EXIT_MOST


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_makes_its_own_connections(api: ScriptedRbApi) -> None:
    rb = client(api, strict=True)
    session = rb.session(run_id="parent")
    run(session, 2)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            decided = gates(run(rb.session(run_id="child"), 3))
            os.write(writing, json.dumps(decided).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert "unavailable" not in json.loads(pipe.read())
    assert "unavailable" not in gates(run(session, 2, start=2))
    runs = [received.body["run_id"] for received in at(api, EVALUATE)]
    assert runs == ["parent", "child", "child", "parent", "parent"]


def test_clients_of_one_server_and_key_share_connections_until_the_last_is_closed(api: ScriptedRbApi) -> None:
    first, second = client(api), client(api)
    for rb in (first, second):
        run(rb.session(), 2)
    (pool,) = [pool for (url, _), pool in pools._pools.items() if url == api.url]
    left = [len(pool._idle)]
    for rb in (first, second):
        rb.close()
        left.append(len(pool._idle))
    assert left == [1, 1, 0]


def test_a_request_closes_connections_that_were_not_used_for_a_while(api: ScriptedRbApi) -> None:
    exchange = Exchange(address_of("base_url", api.url, None))
    pool = pools.of(exchange.address)
    (made,) = pool._idle
    old = _Connection(exchange.address)
    old.used -= IDLE_SECONDS + 1
    pool._idle.insert(0, old)
    assert exchange.send(Ask(path="/health"), 10.0).is_success
    assert pool._idle == [made]
    assert old._client.is_closed


def test_threads_that_use_a_closed_client_at_once_open_it_once(api: ScriptedRbApi) -> None:
    rb = client(api, api_key="rbk_scripted_key")
    rb.close()
    threads = [threading.Thread(target=run, args=(rb.session(), 3)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (pool,) = [pool for (url, _), pool in pools._pools.items() if url == api.url]
    assert (len(pool.users), len(at(api, EVALUATE))) == (1, 16)


def test_a_client_that_is_forgotten_closes_its_connection() -> None:
    with Silent() as server:
        sink = HttpSink(server.url)
        thread = threading.Thread(target=_offer, args=(sink,))
        thread.start()
        assert server.asked.wait(5)
        thread.join(5)
        del sink, thread
        assert server.closed.wait(5)


def _offer(sink: HttpSink) -> None:
    from reasonblocks.events import RunFinish
    from reasonblocks.exceptions import Unavailable

    with pytest.raises(Unavailable):
        sink.emit_many([RunFinish(run_id="r", outcome="success", timestamp=1.0)], 0.3)


def test_a_client_without_a_server_loads_no_network() -> None:
    program = """
    import sys
    from reasonblocks import ReasonBlocks
    ReasonBlocks()
    assert not {"httpx", "asyncio", "reasonblocks.backends.http", "reasonblocks.wire"} & {*sys.modules}
    """
    process(program, REASONBLOCKS_BASE_URL="")


@pytest.mark.parametrize("made", [lambda api: client(api), lambda api: HttpSink(api.url)])
def test_without_httpx_the_error_has_the_line_that_installs_it(
    api: ScriptedRbApi, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ExtraMissing, match=r"needs httpx: pip install 'httpx") as caught:
        made(api)
    assert (caught.value.distribution, caught.value.extra) == ("httpx", "http")


NO_THREAD = """
    import os, threading
    from reasonblocks.backends.http import Ask, Exchange, address_of
    from reasonblocks.exceptions import Unavailable

    def refuse(_):
        raise RuntimeError("can't start new thread")

    exchange = Exchange(address_of("base_url", os.environ["SERVER"], None))
    start, threading.Thread.start = threading.Thread.start, refuse
    for _ in range(4):  # more than a server may fail
        try:
            exchange.ask("the evaluator", Ask(path="/health"), None, bytes)
            raise SystemExit("an answer without a thread")
        except Unavailable as error:
            assert "no thread can be started" in str(error), error
    assert exchange.send(Ask(path="/health"), 10.0).is_success
    threading.Thread.start = start
    assert exchange.ask("the evaluator", Ask(path="/health"), None, bytes)
    exchange.close()
"""


DRIPPED = """
    import socket, threading, time
    from reasonblocks.backends.http import Ask, Exchange, address_of
    from reasonblocks.exceptions import Unavailable

    listener = socket.create_server(("127.0.0.1", 0))

    def drip():
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-length: 100000\\r\\n\\r\\n")
        while True:
            connection.sendall(b"x")
            time.sleep(0.05)

    threading.Thread(target=drip, daemon=True).start()
    exchange = Exchange(address_of("base_url", f"http://127.0.0.1:{listener.getsockname()[1]}", None))

    def refuse(_):
        raise RuntimeError("can't start new thread")

    threading.Thread.start = refuse
    try:
        exchange.send(Ask(path="/health"), 0.5)
        raise SystemExit("an answer that never ends")
    except Unavailable as error:
        assert "no answer within 0.5 s" in str(error), error
"""


def test_a_request_that_is_made_in_place_ends_in_time() -> None:
    process(DRIPPED)


def test_without_a_thread_no_step_waits_and_events_are_sent(api: ScriptedRbApi) -> None:
    process(NO_THREAD, SERVER=api.url)
