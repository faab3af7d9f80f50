"""Implements `reasonblocks serve`: the server with its workers, on a data folder or a database."""

from __future__ import annotations

import ipaddress
import json
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from typer import Option

from reasonblocks.exceptions import ReasonBlocksError
from reasonblocks_workbench.cli.options import FlagError, expand_options, whole
from reasonblocks_workbench.cli.output import OK, PROBLEM, say, warn

from ._opened import Database, open_storage, settings_of

if TYPE_CHECKING:
    import uvicorn

    from ..settings import Settings
    from ..storage import Storage
    from ..values import KeyRow

HOST, PORT = "127.0.0.1", 8700
ORG = "default"
LINK_S = 15 * 60
"""Seconds for which the printed login link is valid."""
BACKLOG = 2048
"""Connections that wait while all workers are busy; uvicorn's own number."""
GRACE_S = 2
"""Seconds that open requests have after SIGTERM. A stream of events does not end by itself."""
KEEP_ALIVE_S = 75
"""Seconds for which an idle connection stays open: longer than the 60 of nginx, which must be the first to close it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The URL of a server, its first key if it was just created, and a login link for the dashboard."""

    url: str
    data: str
    key: str | None
    login: str | None


@expand_options
def serve(
    database: Database,
    host: Annotated[str, Option(metavar="HOST", help="the address to listen on")] = HOST,
    port: Annotated[int, Option(parser=whole, metavar="PORT", help="the port to listen on, 0 for any free one")] = PORT,
    public_url: Annotated[
        str | None, Option(metavar="URL", help="the address that people use if a proxy is in front of the server")
    ] = None,
    qdrant_url: Annotated[
        str | None,
        Option(metavar="URL", help="the Qdrant server for the patterns ($QDRANT_URL, else a file in the data folder)"),
    ] = None,
    threads: Annotated[
        str | None,
        Option(
            metavar="DATABASE",
            help="the database of the agents' threads, a path or postgresql://...: the dashboard then shows their "
            "cards ($REASONBLOCKS_THREADS)",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        Option(parser=whole, metavar="N", help="the number of worker processes ($REASONBLOCKS_WORKERS, else 1)"),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="print one JSON object when the server is ready")] = False,
) -> int:
    """Run the server, which stores a team's runs and shows them in a dashboard.

    It runs until SIGTERM or Ctrl-C. The first start creates the database and a key, which it prints once.
    """
    from reasonblocks.backends.qdrant_store.clients import require_client  # imports numpy

    from ._workers import keep_running

    if public_url and not public_url.startswith(("http://", "https://")):
        raise FlagError("--public-url", "must be an http or https URL")
    settings = settings_of(database, qdrant_url=qdrant_url, workers=workers, threads_url=threads)
    if settings.qdrant_url is not None:
        require_client("QdrantStore")
    if settings.threads_url is not None:
        _check_threads(settings.threads_url)
    with _listener(host, port) as listener:
        with open_storage(settings) as storage:
            access = _prepare_access(storage, settings, (public_url or _url(listener)).rstrip("/"))
        work = partial(work_on, settings, listener)
        done = keep_running(work, settings.workers, partial(_show, access, host, as_json=as_json))
    if not done:
        warn("reasonblocks serve: a worker could not start")
    return OK if done else PROBLEM


def _check_threads(url: str) -> None:
    """Raise `ReasonBlocksError` for a database of threads that cannot be opened."""
    from ..threads import store_of

    store = store_of(url)
    try:
        with store.read():
            pass
    finally:
        store.close()


def _listener(host: str, port: int) -> socket.socket:
    """Return a listening socket, with its protocol: without one, asyncio does not turn off Nagle's algorithm."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise ReasonBlocksError(f"cannot listen on {host} port {port}: {reason}") from error
    return listener


def _url(listener: socket.socket) -> str:
    """Return the URL of the listener, on this machine if it listens on all addresses."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _prepare_access(storage: Storage, settings: Settings, url: str) -> Access:
    """Create the first key of an empty server, and a login link.

    The link is for the oldest usable key with the scope `admin`, else for the oldest one with `read`.
    """
    from ..values import SCOPES

    now, secret = time.time(), None
    keys = storage.keys.list(ORG)
    if not keys:
        with storage.lock("first-key") as first:
            if first and not storage.keys.list(ORG):
                _, secret = storage.keys.add(ORG, name="first key", scopes=SCOPES, now=now)
        keys = storage.keys.list(ORG)
    usable = [key for key in keys if _may_log_in(key, now)]
    login = None
    if usable:
        oldest = min(usable, key=lambda key: ("admin" not in key.scopes, key.created))
        login = f"{url}/ui/link/{storage.keys.link(oldest.key_id, expires=now + LINK_S)}"
    return Access(url=url, data=str(settings.data), key=secret, login=login)


def _may_log_in(key: KeyRow, now: float) -> bool:
    return key.revoked is None and (key.expires is None or key.expires > now) and "read" in key.scopes


def _show(access: Access, host: str, *, as_json: bool) -> None:
    if not _is_loopback(host):
        warn(f"reasonblocks serve: other machines can reach {host}, and keys are sent unencrypted: put a proxy with "
             "TLS in front of the server")  # fmt: skip
    if as_json:
        say(json.dumps({"url": access.url, "data": access.data, "key": access.key, "login": access.login}))
    else:
        say(f"ReasonBlocks server: {access.url} (data in {access.data})")
        if access.key is not None:
            say(f"first key, which is shown only once: {access.key}")
        if access.login is not None:
            say(f"dashboard, for one login within {LINK_S // 60} minutes: {access.login}")
    sys.stdout.flush()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def work_on(settings: Settings, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve requests on a shared socket until SIGTERM, as a worker."""
    import uvicorn

    from ..app import create_app

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready()

    Server(_config(partial(create_app, settings))).run(sockets=[listener])


def _config(app: Callable[[], object]) -> uvicorn.Config:
    import uvicorn

    return uvicorn.Config(
        app,
        factory=True,
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=KEEP_ALIVE_S,
    )
