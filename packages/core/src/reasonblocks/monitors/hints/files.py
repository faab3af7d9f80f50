"""Hints for paths that are not found where the run has shown such a file elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..excerpts import literal
from .moment import Moment

_FILE = r"((?:[\w.@~+-]*/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,5})"
_MISSING = re.compile(
    r"(?:No such file or directory:? ?|file not found:? ?|cannot (?:open|access|stat|find) ?(?:file )?"
    rf"|does not exist:? ?)['\"`]?{_FILE}\b|(?<![\w.@~+/-]){_FILE}['\"`]?:? (?:No such file|does not exist|not found)",
    re.IGNORECASE,
)
_NOT_THERE = re.compile(
    r"no such (?:file|directory)|(?:file|path|directory|folder) (?:was )?not found|not found: "
    r"|(?:file|path|directory|folder)\S* does not exist|cannot (?:open|access|stat|find)|ENOENT|exit status 2",
    re.IGNORECASE,
)
_PATH_ARGUMENT = re.compile(r"(?:path|dir|directory|file|folder|cwd)\w*$|\w*(?:Path|Dir|_path|_dir|_file)$")


def elsewhere(moment: Moment) -> str:
    """Name the place where the run has shown a path with the same end as the one that is missing."""
    if not (moment.failed and moment.own) or not _NOT_THERE.search(moment.reading.text[:2_000]):
        return ""
    found = _MISSING.search(moment.reading.text[-3_000:])
    missing = found[1] or found[2] if found else "" if moment.kind.changes else _argument(moment.call.arguments)
    parts = [part for part in missing.strip("/").split("/") if part not in ("", ".", "..")]
    for length in (3, 2, 1):
        if len(parts) < length or (length == 1 and (len(parts) > 1 or "." not in parts[-1])):
            continue
        end = "/".join(["", *parts[-length:]])
        for path in reversed(moment.seen.paths):
            at = f"/{path.lstrip('/')}/".find(f"{end}/")
            shown = path[: at + len(end) - (path[:1] != "/")]
            if at > 0 and not missing.endswith(shown) and not shown.endswith(f"/{missing}"):
                named = "error" if found else "call"
                return f"This run has shown {literal(shown)}; the {named} names {literal(missing)}."
    return ""


def _argument(given: object) -> str:
    if not isinstance(given, Mapping):
        return ""
    values = [value for name, value in given.items() if isinstance(value, str) and _PATH_ARGUMENT.match(str(name))]
    return values[0] if len(values) == 1 and "/" in values[0] and len(values[0]) <= 200 else ""
