"""Implements `reasonblocks doctor`: reports what is installed, which backends are in use, and any problems."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from reasonblocks.discovery import ADAPTERS as OURS
from reasonblocks.exceptions import ConfigError, ReasonBlocksError
from reasonblocks.util.extras import EXTRAS as CORE_EXTRAS
from reasonblocks.util.extras import folder_of, pip_install
from reasonblocks.util.secret import shown_url
from reasonblocks.util.text import count_noun

from ..extras import EXTRAS
from .files import ORG
from .output import OK, PROBLEM, Table, show, warn

if TYPE_CHECKING:
    from reasonblocks.backends.http import Exchange

CORE, WORKBENCH = "reasonblocks-core", "reasonblocks-workbench"
ADAPTERS = "reasonblocks.adapters"
LIBRARIES: Mapping[str, str | None] = {
    "jinja2": None,
    "numpy": None,
    "pydantic": None,
    "rich": None,
    "typer": None,
    "detect-secrets": "memory",
    "httpx": "http",
    "mcp": "mcp",
    "opentelemetry-api": "otel",
    "qdrant-client": "qdrant",
}
"""The extra that installs each library; None if the core or the workbench requires it."""
SERVER_SECONDS = 3.0
"""The time limit of each of the two requests to a server."""
KEY_UNKNOWN, NOT_ALLOWED = 401, 403
EXAMPLE = "pip install ./packages/core ./packages/langchain"
IN_MEMORY = 'in memory: patience that runs teach ends with the process; profile="auto" keeps it in a file'
VARIABLES = (
    "REASONBLOCKS_API_KEY",
    "REASONBLOCKS_BASE_URL",
    "REASONBLOCKS_DISABLED",
    "REASONBLOCKS_HOME",
    "REASONBLOCKS_STRICT",
    "REASONBLOCKS_UNPACKED_MB",
    "QDRANT_API_KEY",
    "QDRANT_URL",
)
OF_THE_SERVER = frozenset(
    f"REASONBLOCKS_{name}"
    for name in ("DATA", "DATABASE_URL", "KEYS", "RETENTION_DAYS", "SQLITE_SYNCHRONOUS", "THREADS", "WORKERS")
)
"""Variables that only `reasonblocks serve` reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """An installed adapter: the method that it adds, and the framework that it needs."""

    method: str
    distribution: str
    version: str
    framework: str | None
    framework_version: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """The findings. `problems` make the exit code 1, `warnings` do not."""

    versions: Mapping[str, str | None]
    adapters: tuple[Adapter, ...]
    backends: Mapping[str, str]
    server: Mapping[str, str]
    environment: Mapping[str, str]
    warnings: tuple[str, ...]
    problems: tuple[str, ...]


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object, nothing else on stdout")] = False,
) -> int:
    """Report what is installed and in use here, and change nothing.

    If REASONBLOCKS_BASE_URL names a server, sends it two requests to check that it answers and accepts the key. Sends
    nothing else.
    """
    found = examine(os.environ)
    if as_json:
        print(json.dumps(asdict(found)))
    else:
        for table in _tables(found):
            show(table)
        for line in (*found.problems, *found.warnings):
            warn(f"reasonblocks doctor: {line}")
    return PROBLEM if found.problems else OK


def examine(environment: Mapping[str, str]) -> Examination:
    backends, server, problems = _backends(environment)
    memory, unreadable = _memory(environment)
    problems = tuple(dict.fromkeys((*problems, *unreadable)))
    adapters = _adapters()
    return Examination(
        versions={
            "python": platform.python_version(),
            **{name: _version(name) for name in (CORE, WORKBENCH)},
            **{name: _version(name) for name in LIBRARIES},
        },
        adapters=adapters,
        backends={**backends, **memory},
        server=server,
        environment={name: _shown(name, environment[name]) for name in VARIABLES if environment.get(name)},
        warnings=(*_unknown(environment), *_switches(environment), *_mixed(adapters)),
        problems=problems,
    )


def _backends(environment: Mapping[str, str]) -> tuple[Mapping[str, str], Mapping[str, str], tuple[str, ...]]:
    """Return the backends that `ReasonBlocks()` would use here, its server's answers, and the problems."""
    from reasonblocks.backends.embed.default import embedder_line
    from reasonblocks.options import Options
    from reasonblocks.options.config import configure

    try:
        config = configure(Options(), environment)
    except ReasonBlocksError as error:
        return {}, {}, (str(error),)
    backends = config.backends
    server, problems = ({}, ()) if config.server is None else _asked(config.server.exchange)
    for sink in config.sinks:
        sink.close()
    if config.server is not None:
        config.server.close()
    embedder = getattr(backends.store, "embedder", None)
    described, problem = _described(backends.store)
    return (
        {
            "evaluator": _named(backends.evaluator),
            "pattern store": described,
            "embedder": _embedder(embedder),
            "default embedder": embedder_line(),
            "profiles": IN_MEMORY if config.server is None else "on the server",
        },
        server,
        (*problem, *problems),
    )


def _embedder(embedder: object) -> str:
    """Return the class and the id of an embedder; that of a store on a server is not known here."""
    return "that of the store" if embedder is None else f"{_named(embedder)} {getattr(embedder, 'id', '')}".strip()


def _asked(exchange: Exchange) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Check that a server answers and accepts the key, with two requests that only read."""
    from reasonblocks.backends.http import Ask

    name, begun = exchange.address.shown, monotonic()
    found = {"url": exchange.address.url}
    try:
        health = exchange.send(Ask(path="/health"), SERVER_SECONDS)
        found["answers"] = f"in {(monotonic() - begun) * 1000:.0f} ms"
        if not health.is_success or "status" not in (answer := health.json(name)):
            return found, (f"{name} is not a ReasonBlocks server: {exchange.reason(health)}",)
        found["version"] = str(answer.get("version", "unknown"))[:40]
        runs = exchange.send(Ask(path="/monitor/runs?limit=1"), SERVER_SECONDS)
    except ReasonBlocksError as error:
        return found, (str(error),)
    key = exchange.address.shown_key
    if runs.status == KEY_UNKNOWN:
        return {**found, "key": "refused"}, (f"{name} refuses {key}: {exchange.reason(runs)}",)
    if runs.status == NOT_ALLOWED:
        return {**found, "key": "accepted; it may not read runs"}, ()
    if not runs.is_success:
        return {**found, "key": "unknown"}, (f"{name} cannot list its runs: {exchange.reason(runs)}",)
    return {**found, "key": "accepted"}, ()


def _described(store: object) -> tuple[str, tuple[str, ...]]:
    """Describe the store; for a file, with its path and size or the reason why it cannot be read."""
    from reasonblocks.backends.local_store import LocalStore

    if not isinstance(store, LocalStore) or store.path is None:
        return _named(store), ()
    if not os.path.exists(store.path):
        return f"LocalStore {store.path} (made when a pattern is added)", ()
    try:
        with store:
            return f"LocalStore {store.path}, {count_noun(len(store), 'pattern')}", ()
    except ReasonBlocksError as error:
        return f"LocalStore {store.path}", (str(error),)


def _memory(environment: Mapping[str, str]) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Describe the store of codebase memory; for a file, with what it holds or the reason why it cannot be read."""
    from reasonblocks.backends.local_store.findings import LocalFindings
    from reasonblocks.memory.stores import finding_store

    try:
        with closing(finding_store(environ=environment)) as store:
            if not isinstance(store, LocalFindings) or store.path is None:
                return {"codebase memory": _named(store)}, ()
            if not os.path.exists(store.path):
                return {"codebase memory": f"LocalFindings {store.path} (made when a finding is stored)"}, ()
            codebases = store.codebases(ORG)
    except ReasonBlocksError as error:
        return {}, (str(error),)
    findings = sum(codebase.findings for codebase in codebases)
    counts = f"{count_noun(findings, 'finding')} about {count_noun(len(codebases), 'codebase')}"
    return {"codebase memory": f"LocalFindings {store.path}, {counts}, of org {ORG!r}"}, ()


def _named(backend: object) -> str:
    return f"{type(backend).__module__}.{type(backend).__qualname__}"


def _version(name: str) -> str | None:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None


def _adapters() -> tuple[Adapter, ...]:
    found = [(entry.name, entry.dist) for entry in entry_points(group=ADAPTERS)]
    return tuple(_adapter(method, dist) for method, dist in sorted(found, key=lambda pair: pair[0]) if dist is not None)


def _adapter(method: str, dist: Distribution) -> Adapter:
    framework = _framework(dist.requires or [])
    return Adapter(
        method=method,
        distribution=dist.name,
        version=dist.version,
        framework=framework,
        framework_version=_version(framework) if framework else None,
    )


def _framework(requires: list[str]) -> str | None:
    """Return the first requirement that is not one of our packages."""
    names = [re.split(r"[\s;<>=!~\[(]", requirement, maxsplit=1)[0] for requirement in requires]
    return next((name for name in names if not name.startswith("reasonblocks")), None)


def _shown(name: str, value: str) -> str:
    """Return the value without secrets: no key, and of a URL only what is safe to show."""
    if name.endswith("_KEY"):
        return f"set, {count_noun(len(value), 'character')}"
    if not name.endswith("_URL"):
        return value
    shown = shown_url(value)
    return shown if "://" in shown else f"set, {shown}"


def _unknown(environment: Mapping[str, str]) -> list[str]:
    """Warn about variables that look like ours and have no effect."""
    known = {*VARIABLES, *OF_THE_SERVER}
    names = sorted(name for name in environment if name.startswith("REASONBLOCKS_") and name not in known)
    return [str(ConfigError.unknown("environment variable", name, VARIABLES)) for name in names]


def _switches(environment: Mapping[str, str]) -> list[str]:
    if environment.get("REASONBLOCKS_DISABLED") == "1":
        return ["REASONBLOCKS_DISABLED=1: steering is off, everything passes through untouched"]
    return []


def _mixed(adapters: tuple[Adapter, ...]) -> list[str]:
    """Report our adapters whose version differs from the core's: our packages share one version."""
    core = _version(CORE)
    ours = {adapter.distribution: adapter.version for adapter in adapters if adapter.distribution in OURS.values()}
    return [
        f"{name} is {version} but {CORE} is {core}; in one clone of ReasonBlocks: "
        f"pip install ./packages/core {folder_of(name)}"
        for name, version in ours.items()
        if core and version != core
    ]


def _absent(library: str) -> str:
    extra = LIBRARIES.get(library)
    wanted = (library,) if extra is None else {**CORE_EXTRAS, **EXTRAS}[extra]
    return f"not installed{' (optional)' if extra else ''}: {pip_install(wanted)}"


def _tables(found: Examination) -> list[Table]:
    adapters = [
        (
            adapter.distribution,
            f"{adapter.version}, rb.{adapter.method}(), {adapter.framework} {adapter.framework_version or 'missing'}",
        )
        for adapter in found.adapters
    ]
    parts = (
        ("versions", [(name, version or _absent(name)) for name, version in found.versions.items()]),
        ("adapters", adapters or [("none", f"for instance, in a clone of ReasonBlocks: {EXAMPLE}")]),
        ("backends", list(found.backends.items())),
        ("server", list(found.server.items())),
        ("environment", list(found.environment.items()) or [("none", "no variable of ours is set")]),
    )
    return [Table(title=title, head=("", ""), rows=rows) for title, rows in parts if rows]
