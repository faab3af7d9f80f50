"""Implements `reasonblocks memory list | search | forget | serve`, for the notes of agents about codebases."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from typer import Argument, Option, Typer

from reasonblocks import __version__
from reasonblocks.exceptions import ExtraMissing, ReasonBlocksError
from reasonblocks.util.files import STORE
from reasonblocks.util.text import count_noun

from ..extras import EXTRAS
from ._main import OneCommand
from .files import ORG, in_home
from .options import FlagError, Json, decimal, exclusive, expand_options, whole
from .output import OK, PROBLEM, Table, printable, say, show, warn

if TYPE_CHECKING:
    from reasonblocks.findings import Checkout
    from reasonblocks.memory import CodebaseMemory
    from reasonblocks.types import Finding, RecalledFinding

PREVIEW = 70
"""Characters of a finding's text in a row."""


memory = Typer(
    add_completion=False,
    help="Show and remove the findings of codebase memory, and serve them to agents over MCP.",
)
Root: TypeAlias = Annotated[
    str | None,
    Option(metavar="DIR", help="the checkout whose files are compared with the findings (the current folder)"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The options that name the store of the findings."""

    store: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help=f"the file of the findings (without a server or Qdrant in the environment: {in_home(STORE)})",
        ),
    ] = None
    base_url: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="the server that has the findings ($REASONBLOCKS_BASE_URL); its key is $REASONBLOCKS_API_KEY",
        ),
    ] = None
    org: Annotated[
        str | None,
        Option(
            metavar="ORG",
            help=f"the org whose findings they are ({ORG}); not for a server, whose key decides it",
        ),
    ] = None

    def check_org(self) -> None:
        """Raise `FlagError` for an org beside a server, whose key decides: `forget --all` would remove its findings."""
        url = os.environ.get("REASONBLOCKS_BASE_URL") if self.base_url is None else self.base_url
        if self.org is not None and self.store is None and url:
            raise FlagError("--org", "is not for a server, whose key decides the org: leave it out")

    def open(self, codebase: str, root: str | None) -> CodebaseMemory:
        """Return the memory of the codebase. What is stale is marked, because a person decides about it."""
        from reasonblocks.memory import CodebaseMemory

        self.check_org()
        return CodebaseMemory(
            codebase, store=self.store, root=root, base_url=self.base_url, org_id=self.org or ORG, stale="mark"
        )


@memory.command("list")
@expand_options
def list_findings(
    place: Place,
    codebase: Annotated[
        str | None, Argument(metavar="CODEBASE", help="its id; without it, all codebases are listed")
    ] = None,
    path: Annotated[
        str | None, Option(metavar="PATH", help="only findings about this file, or about files in this folder")
    ] = None,
    stale: Annotated[
        bool, Option("--stale", help="only findings whose file has changed or is gone; needs --root")
    ] = False,
    root: Annotated[str | None, Option(metavar="DIR", help="the checkout that --stale compares with")] = None,
    as_json: Json = False,
) -> int:
    """List the findings of a codebase, or the codebases that have findings."""
    from reasonblocks.findings import Checkout

    _check_root(root, "--stale", stale)
    if codebase is None:
        for flag, given in (("--path", path is not None), ("--stale", stale)):
            if given:
                raise FlagError(flag, "needs a CODEBASE")
        return _list_codebases(place, as_json=as_json)
    with place.open(codebase, root) as opened:
        found = opened.stale(root) if stale else opened.list_all()
    if path is not None:
        found = _about(found, path, Checkout(root))
    if as_json:
        for finding in found:
            say(_as_json(finding))
    elif found:
        rows = [(one.finding_id, *_row(one)) for one in found]
        show(Table(title=count_noun(len(found), "finding"), head=("id", *_HEAD), rows=rows))
    else:
        say("no finding")
    return OK


def _list_codebases(place: Place, *, as_json: bool) -> int:
    """List the codebases of the org, with the number of their findings and the time of the newest."""
    from reasonblocks.memory.stores import finding_store

    place.check_org()
    with closing(finding_store(place.store, base_url=place.base_url)) as store:
        found = store.codebases(place.org or ORG)
    if as_json:
        for codebase in found:
            say(json.dumps(asdict(codebase)))
    elif found:
        rows = [(one.codebase_id, f"{one.findings:,}", one.newest) for one in found]
        show(Table(title=count_noun(len(found), "codebase"), head=("codebase", "findings", "newest"), rows=rows))
    else:
        say("no codebase")
    return OK


def _check_root(root: str | None, flag: str, given: bool) -> None:
    """Raise `FlagError` unless both or none is given: in a wrong folder, all findings would look stale."""
    if given and root is None:
        raise FlagError(flag, "needs the folder of the checkout: --root DIR")
    if root is not None and not given:
        raise FlagError("--root", f"is only for {flag}")


def _about(found: Sequence[Finding], path: str, checkout: Checkout) -> tuple[Finding, ...]:
    """Return the findings about this file or about files in this folder, which may be "."."""
    from reasonblocks.findings import checked_path

    wanted = checked_path(checkout.relative(path))
    if not wanted:
        return tuple(one for one in found if one.file_path)
    return tuple(one for one in found if one.file_path == wanted or one.file_path.startswith(f"{wanted}/"))


@memory.command("search")
@expand_options
def search_findings(
    place: Place,
    codebase: Annotated[str, Argument(metavar="CODEBASE")],
    texts: Annotated[list[str], Argument(metavar="TEXT", help="the query; several TEXTs are joined by blanks")],
    top_k: Annotated[int, Option(parser=whole, metavar="N", help="the most findings")] = 5,
    threshold: Annotated[float, Option(parser=decimal, metavar="X", help="the lowest score, 0 to 1")] = 0.25,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Show the findings that fit a text, also those that agents do not recall because their file has changed."""
    from reasonblocks.util.text import preview

    with place.open(codebase, root) as opened:
        query = " ".join(texts)
        found = opened.recall(query, top_k, threshold)
        is_empty = not found and not opened.recall(query, 1, 0)
    if as_json:
        for finding in found:
            say(_as_json(finding))
    elif found:
        title = f"{count_noun(len(found), 'finding')}, with scores from 0 to 1"
        show(Table(title=title, head=("score", "id", *_HEAD, "file is"), rows=list(map(_hit, found))))
    elif is_empty:
        warn(f"{printable(preview(codebase, PREVIEW))} has no finding; reasonblocks memory list shows codebases")
    else:
        warn(f"nothing has a score of {threshold:g} or more (--threshold 0 shows every one)")
    return OK


def _hit(finding: RecalledFinding) -> tuple[str, ...]:
    freshness = finding.freshness if finding.file_path else "-"
    return (f"{finding.score:.2f}", finding.finding_id, *_row(finding), freshness)


class Several(OneCommand):
    """A command whose options --id and --path may have several values, as in `--id A B`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given, flag = list[str](), ""
        for arg in args:
            if arg.startswith("-"):
                flag = arg if arg in ("--id", "--path") else ""
            elif flag and given[-1] != flag:
                given.append(flag)
            given.append(arg)
        return super().parse_args(ctx, given)


@memory.command("forget", cls=Several)
@expand_options
def forget_findings(
    place: Place,
    codebase: Annotated[str, Argument(metavar="CODEBASE")],
    ids: Annotated[list[str] | None, Option("--id", metavar="ID", help="the findings with these ids")] = None,
    paths: Annotated[
        list[str] | None,
        Option("--path", metavar="PATH", help="the findings about these files, and about files in these folders"),
    ] = None,
    changed: Annotated[
        bool, Option("--changed", help="the findings whose file has changed or is gone; needs --root")
    ] = False,
    every: Annotated[bool, Option("--all", help="all findings of the codebase, without asking")] = False,
    root: Annotated[str | None, Option(metavar="DIR", help="the checkout that --changed compares with")] = None,
    as_json: Json = False,
) -> int:
    """Remove findings of a codebase, and print their number."""
    exclusive({"--id": ids, "--path": paths, "--changed": changed, "--all": every}, required=True)
    _check_root(root, "--changed", changed)
    with place.open(codebase, root) as opened:
        if ids:
            removed = opened.forget(ids)
        elif paths:
            removed = opened.invalidate(paths)
        else:
            removed = opened.invalidate_changed(root) if changed else opened.clear()
    if as_json:
        say(json.dumps({"removed": removed}))
    else:
        say(f"{count_noun(removed, 'finding')} removed")
    missing = len(set(ids or ())) - removed
    if missing > 0:
        warn(f"{count_noun(missing, 'id')} not found")
    return PROBLEM if missing > 0 else OK


@memory.command("serve")
@expand_options
def serve(place: Place, codebase: Annotated[str, Argument(metavar="CODEBASE")], root: Root = None) -> int:
    """Serve a codebase's memory to an agent, as an MCP server on stdio."""
    serve_stdio = mcp_server()
    if sys.stdin is None or sys.stdout is None:  # a file opened later would get the number of the closed one
        raise ReasonBlocksError("`reasonblocks memory serve` needs an MCP client: its stdin or stdout is closed")
    if sys.stdin.isatty():
        warn("reasonblocks memory serve: waiting for an MCP client on stdin; Ctrl-C ends it")
    with place.open(codebase, root) as opened, suppress(KeyboardInterrupt):
        asyncio.run(serve_stdio(opened, __version__))
    return OK


def mcp_server() -> Callable[[CodebaseMemory, str], Coroutine[Any, Any, None]]:
    """Return the function that serves a memory. Raises `ExtraMissing`."""
    try:
        from ..mcp_server import serve_stdio
    except ImportError as exc:  # also an old one, which lacks some names
        raise ExtraMissing("`reasonblocks memory serve`", "mcp>=2", "mcp", EXTRAS["mcp"]) from exc
    return serve_stdio


_HEAD = ("type", "file", "stored", "text")


def _row(finding: Finding) -> tuple[str, ...]:
    from reasonblocks.util.text import preview

    text = printable(preview(finding.content, PREVIEW))
    return (finding.finding_type, finding.file_path or "-", finding.created_at[:10], text)


def _as_json(finding: Finding) -> str:
    values = {field.name: getattr(finding, field.name) for field in fields(finding)}
    return json.dumps({**values, "metadata": dict(finding.metadata)})
