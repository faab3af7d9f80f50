"""A scripted rb-api on 127.0.0.1: a real HTTP server for the tests of clients, with faults that can be switched on.

It is the application of `reasonblocks-server` with its data in a temporary folder, and records every request with its
bytes on the wire. `misbehave` makes it slow, dripping, hanging or lying, `close_port` makes it unreachable, `restart`
closes its connections, and `forget` and `revoke` take from it the runs and a key.

Importing it raises `ExtraMissing` without `reasonblocks-server`.
"""

from __future__ import annotations

from importlib.util import find_spec

from reasonblocks.exceptions import ExtraMissing
from reasonblocks.util.extras import folder_of

if find_spec("reasonblocks_server") is None:
    needed = ("reasonblocks-core", "reasonblocks-workbench", "reasonblocks-server")
    raise ExtraMissing(__name__, needed[-1], "server", tuple(map(folder_of, needed)))

from ._faults import LIES, Drip, Fault, Hang, HangUp, Lie, Lying, Slow, Status
from ._records import QueuedNote, Received
from ._server import KEY, ScriptedRbApi

__all__ = [
    "KEY", "LIES", "Drip", "Fault", "Hang", "HangUp", "Lie", "Lying", "QueuedNote", "Received", "ScriptedRbApi", "Slow",
    "Status",
]  # fmt: skip
