"""Implements `reasonblocks memory list | search | forget | serve`, for the notes of agents about codebases."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from reasonblocks import __version__
from reasonblocks.exceptions import ExtraMissing, ReasonBlocksError
from reasonblocks.util.files import STORE

from ..extras import EXTRAS
from .files import ORG, add_org, in_home
from .options import FlagError
from .output import OK, PROBLEM, Parsers, Table, numbered, printable, say, show, warn

if TYPE_CHECKING:
    from reasonblocks.findings import Checkout
    from reasonblocks.memory import CodebaseMemory
    from reasonblocks.types import Finding, RecalledFinding

PREVIEW = 70
"""Characters of a finding's text in a row."""


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "memory",
        help="list, search and forget the notes of agents about codebases; serve them to agents",
        description="Shows and removes the findings of codebase memory, and serves them to agents over MCP.",
        allow_abbrev=False,
    )
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _list_parser(subcommands)
    _search_parser(subcommands)
    _forget_parser(subcommands)
    _serve_parser(subcommands)


def _list_parser(commands: Parsers) -> None:
    parser = _parser(commands, "list", _list, "list the findings of a codebase, or the codebases that have findings")
    parser.add_argument("codebase", nargs="?", metavar="CODEBASE", help="its id; without it, all codebases are listed")
    parser.add_argument("--path", metavar="PATH", help="only findings about this file, or about files in this folder")
    parser.add_argument(
        "--stale", action="store_true", help="only findings whose file has changed or is gone; needs --root"
    )
    _add_root(parser, "the checkout that --stale compares with")
    _add_json(parser)


def _search_parser(commands: Parsers) -> None:
    parser = _parser(
        commands,
        "search",
        _search,
        "show the findings that fit a text, also those that agents do not recall because their file has changed",
    )
    parser.add_argument("codebase", metavar="CODEBASE")
    parser.add_argument("texts", nargs="+", metavar="TEXT", help="the query; several TEXTs are joined by blanks")
    parser.add_argument("--top-k", type=int, default=5, metavar="N", help="the most findings (5)")
    parser.add_argument("--threshold", type=float, default=0.25, metavar="X", help="the lowest score, 0 to 1 (0.25)")
    _add_root(parser, "the checkout whose files are compared with the findings (the current folder)")
    _add_json(parser)


def _forget_parser(commands: Parsers) -> None:
    parser = _parser(commands, "forget", _forget, "remove findings of a codebase, and print their number")
    parser.add_argument("codebase", metavar="CODEBASE")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument(
        "--id", nargs="+", action="extend", metavar="ID", dest="ids", help="the findings with these ids"
    )
    chosen.add_argument(
        "--path",
        nargs="+",
        action="extend",
        metavar="PATH",
        dest="paths",
        help="the findings about these files, and about files in these folders",
    )
    chosen.add_argument(
        "--changed", action="store_true", help="the findings whose file has changed or is gone; needs --root"
    )
    chosen.add_argument("--all", action="store_true", help="all findings of the codebase, without asking")
    _add_root(parser, "the checkout that --changed compares with")
    _add_json(parser)


def _serve_parser(commands: Parsers) -> None:
    parser = _parser(commands, "serve", _serve, "serve a codebase's memory to an agent, as an MCP server on stdio")
    parser.add_argument("codebase", metavar="CODEBASE")
    _add_root(parser, "the checkout whose files are compared with the findings (the current folder)")


def _parser(
    commands: Parsers, name: str, command: Callable[[argparse.Namespace], int], help: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False)
    parser.add_argument(
        "--store",
        metavar="FILE",
        help=f"the file of the findings (without a server or Qdrant in the environment: {in_home(STORE)})",
    )
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help="the server that has the findings ($REASONBLOCKS_BASE_URL); its key is read from $REASONBLOCKS_API_KEY",
    )
    add_org(parser, f"the org whose findings they are ({ORG}); not for a server, whose key decides it")
    parser.set_defaults(command=command)
    return parser


def _add_root(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--root", metavar="DIR", help=what)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object per line, nothing else on stdout")


def _opened(arguments: argparse.Namespace) -> CodebaseMemory:
    """Return the memory of the codebase. What is stale is marked, because a person decides about it."""
    from reasonblocks.memory import CodebaseMemory

    _check_org(arguments)
    return CodebaseMemory(
        arguments.codebase,
        store=arguments.store,
        root=arguments.root,
        base_url=arguments.base_url,
        org_id=arguments.org or ORG,
        stale="mark",
    )


# ------------------------------------------------------------ list


def _list(arguments: argparse.Namespace) -> int:
    from reasonblocks.findings import Checkout

    _check_root(arguments, "--stale", arguments.stale)
    if arguments.codebase is None:
        return _list_codebases(arguments)
    with _opened(arguments) as memory:
        found = memory.stale(arguments.root) if arguments.stale else memory.list_all()
    if arguments.path is not None:
        found = _about(found, arguments.path, Checkout(arguments.root))
    if arguments.json:
        for finding in found:
            say(_as_json(finding))
    elif found:
        show(
            Table(
                title=numbered(len(found), "finding"),
                head=("id", *_HEAD),
                rows=[(one.finding_id, *_row(one)) for one in found],
            )
        )
    else:
        say("no finding")
    return OK


def _list_codebases(arguments: argparse.Namespace) -> int:
    """List the codebases of the org, with the number of their findings and the time of the newest."""
    from reasonblocks.memory.stores import finding_store

    for flag, given in (("--path", arguments.path is not None), ("--stale", arguments.stale)):
        if given:
            raise FlagError(flag, "needs a CODEBASE")
    _check_org(arguments)
    with closing(finding_store(arguments.store, base_url=arguments.base_url)) as store:
        found = store.codebases(arguments.org or ORG)
    if arguments.json:
        for codebase in found:
            say(json.dumps(asdict(codebase)))
    elif found:
        rows = [(one.codebase_id, f"{one.findings:,}", one.newest) for one in found]
        show(Table(title=numbered(len(found), "codebase"), head=("codebase", "findings", "newest"), rows=rows))
    else:
        say("no codebase")
    return OK


def _check_org(arguments: argparse.Namespace) -> None:
    """Raise `FlagError` for an org beside a server: `forget --all` would remove the findings of the key's own org."""
    url = os.environ.get("REASONBLOCKS_BASE_URL") if arguments.base_url is None else arguments.base_url
    if arguments.org is not None and arguments.store is None and url:
        raise FlagError("--org", "is not for a server, whose key decides the org: leave it out")


def _check_root(arguments: argparse.Namespace, flag: str, given: bool) -> None:
    """Raise `FlagError` unless both or none is given: in a wrong folder, all findings would look stale."""
    if given and arguments.root is None:
        raise FlagError(flag, "needs the folder of the checkout: --root DIR")
    if arguments.root is not None and not given:
        raise FlagError("--root", f"is only for {flag}")


def _about(found: Sequence[Finding], path: str, checkout: Checkout) -> tuple[Finding, ...]:
    """Return the findings about this file or about files in this folder, which may be "."."""
    from reasonblocks.findings import checked_path

    wanted = checked_path(checkout.relative(path))
    if not wanted:
        return tuple(one for one in found if one.file_path)
    return tuple(one for one in found if one.file_path == wanted or one.file_path.startswith(f"{wanted}/"))


# ------------------------------------------------------------ search


def _search(arguments: argparse.Namespace) -> int:
    from reasonblocks.util.text import preview

    with _opened(arguments) as memory:
        query = " ".join(arguments.texts)
        found = memory.recall(query, arguments.top_k, arguments.threshold)
        is_empty = not found and not memory.recall(query, 1, 0)
    if arguments.json:
        for finding in found:
            say(_as_json(finding))
    elif found:
        title = f"{numbered(len(found), 'finding')}, with scores from 0 to 1"
        show(Table(title=title, head=("score", "id", *_HEAD, "file is"), rows=list(map(_hit, found))))
    elif is_empty:
        codebase = printable(preview(arguments.codebase, PREVIEW))
        warn(f"{codebase} has no finding; reasonblocks memory list shows codebases")
    else:
        warn(f"nothing has a score of {arguments.threshold:g} or more (--threshold 0 shows every one)")
    return OK


def _hit(finding: RecalledFinding) -> tuple[str, ...]:
    freshness = finding.freshness if finding.file_path else "-"
    return (f"{finding.score:.2f}", finding.finding_id, *_row(finding), freshness)


# ------------------------------------------------------------ forget


def _forget(arguments: argparse.Namespace) -> int:
    _check_root(arguments, "--changed", arguments.changed)
    with _opened(arguments) as memory:
        removed = _removed(arguments, memory)
    if arguments.json:
        say(json.dumps({"removed": removed}))
    else:
        say(f"{numbered(removed, 'finding')} removed")
    missing = len(set(arguments.ids or ())) - removed
    if missing > 0:
        warn(f"{numbered(missing, 'id')} not found")
    return PROBLEM if missing > 0 else OK


def _removed(arguments: argparse.Namespace, memory: CodebaseMemory) -> int:
    if arguments.ids:
        return memory.forget(arguments.ids)
    if arguments.paths:
        return memory.invalidate(arguments.paths)
    return memory.invalidate_changed(arguments.root) if arguments.changed else memory.clear()


# ------------------------------------------------------------ serve


def _serve(arguments: argparse.Namespace) -> int:
    """Serve until the client closes stdin or the user presses Ctrl-C."""
    serve_stdio = mcp_server()
    if sys.stdin is None or sys.stdout is None:  # a file opened later would get the number of the closed one
        raise ReasonBlocksError("`reasonblocks memory serve` needs an MCP client: its stdin or stdout is closed")
    if sys.stdin.isatty():
        warn("reasonblocks memory serve: waiting for an MCP client on stdin; Ctrl-C ends it")
    with _opened(arguments) as memory, suppress(KeyboardInterrupt):
        asyncio.run(serve_stdio(memory, __version__))
    return OK


def mcp_server() -> Callable[[CodebaseMemory, str], Coroutine[Any, Any, None]]:
    """Return the function that serves a memory. Raises `ExtraMissing`."""
    try:
        from ..mcp_server import serve_stdio
    except ImportError as exc:  # also an old one, which lacks some names
        raise ExtraMissing("`reasonblocks memory serve`", "mcp>=2", "mcp", EXTRAS["mcp"]) from exc
    return serve_stdio


# ------------------------------------------------------------ rows

_HEAD = ("type", "file", "stored", "text")


def _row(finding: Finding) -> tuple[str, ...]:
    from reasonblocks.util.text import preview

    text = printable(preview(finding.content, PREVIEW))
    return (finding.finding_type, finding.file_path or "-", finding.created_at[:10], text)


def _as_json(finding: Finding) -> str:
    values = {field.name: getattr(finding, field.name) for field in fields(finding)}
    return json.dumps({**values, "metadata": dict(finding.metadata)})
