"""A forked process resets what belongs to its parent."""

from __future__ import annotations

import gc
import os
import weakref

import pytest

from reasonblocks.concurrency.forks import on_fork
from tests.core.world import printed

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def test_a_reset_is_called_in_the_child_alone() -> None:
    program = """
        import os
        from reasonblocks.concurrency.forks import on_fork

        class Owner:
            def __init__(self):
                self.resets = 0
                on_fork(self.reset)

            def reset(self):
                self.resets += 1

        calls, owner = [], Owner()
        on_fork(lambda: calls.append(1))
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        print("parent" if child else "child", owner.resets, len(calls), flush=True)
    """
    assert printed(program).splitlines() == ["child 1 1", "parent 0 0"]


def test_around_a_fork_both_processes_call_what_comes_after() -> None:
    program = """
        import os
        from reasonblocks.concurrency.forks import around_fork

        calls = []
        around_fork(lambda: calls.append("before"), lambda: calls.append("after"))
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        print(*calls, flush=True)
    """
    assert printed(program).splitlines() == ["before after"] * 2


def test_a_client_works_in_a_child_that_was_forked_while_its_locks_were_held() -> None:
    program = """
        import os
        from reasonblocks import ReasonBlocks, StepInput, StepOutcome
        from reasonblocks_testing import RecordingSink
        from reasonblocks.backends.embed import _static

        sink = RecordingSink()
        rb = ReasonBlocks(sinks=[sink], scorer=lambda step: 0.5, strict=True)
        queue = rb._telemetry._queues[0]
        with rb._runs._lock, rb._telemetry._redacting, queue._wake, _static._lock:  # as other threads may
            child = os.fork()
        if child:
            print(os.WEXITSTATUS(os.waitpid(child, 0)[1]), flush=True)
        else:
            session = rb.session(run_id="in the child")
            for number in range(2):
                session.end_step(session.begin_step(StepInput()), StepOutcome(text="text"))
            session.finish()
            rb.close(5)
            os._exit(len(sink.events))
    """
    assert printed(program).split() == ["5"]


def test_an_object_is_not_kept_alive_by_its_reset() -> None:
    class Owner:
        def reset(self) -> None: ...

    owner = Owner()
    on_fork(owner.reset)
    alive = weakref.ref(owner)
    del owner
    gc.collect()
    assert alive() is None
