"""Validates findings and their scope, and derives a finding's id."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import TypeVar

from ..exceptions import ConfigError
from ..types import JSON, Codebase, Finding
from ..util.json import canonical, storable
from ..util.text import preview, whole

CONTENT_CHARS = 8_000
PATH_CHARS = 512
TYPE_CHARS = 64
METADATA_CHARS = 4_000
"""Characters of the metadata's values and names together, about."""
ID_CHARS = 512
"""Characters of the id of a codebase, an org or a finding."""
QUERY_CHARS = 2_000
MOST_RECALLED = 50
"""The limit of `top_k`."""
MOST_FINDINGS = 20_000
"""Findings of one codebase: a search compares all of them. An agent in a loop must not fill a disk."""
FindingT = TypeVar("FindingT", bound=Finding)
SHOWN = 80
"""Characters of an invalid text that an error shows, because the error may go to a log."""


def checked_codebase(org_id: object, codebase_id: object) -> Codebase:
    """Return the scope if both ids are valid. Raises `ConfigError`."""
    return Codebase(org_id=_id("org_id", org_id), codebase_id=_id("codebase_id", codebase_id))


def check_finding(finding: FindingT) -> FindingT:
    """Return the finding with plain values if it is valid. Raises `ConfigError` with the field and the rule."""
    content = _text("content", finding.content, CONTENT_CHARS)
    if not content.strip():
        raise ConfigError("content", content[:SHOWN], "must have a character that is not white space")
    kind = _line("finding_type", finding.finding_type, TYPE_CHARS)
    if not kind.strip():
        raise ConfigError("finding_type", kind, f'must be one line of 1 to {TYPE_CHARS} characters, such as "note"')
    return replace(
        finding,
        content=content,
        file_path=checked_path(finding.file_path),
        finding_type=kind,
        metadata=_metadata(finding.metadata),
    )


def checked_path(path: object) -> str:
    """Return the path of a file or folder as findings have it: "/" between parts, no "." part, none at the end.

    The empty path is that of a finding about no file. ".." stays, because its meaning depends on links. Raises
    `ConfigError`, also for a name that is not UTF-8, whose repaired form would be another file.
    """
    text = _line("file_path", os.fspath(path) if isinstance(path, os.PathLike) else path, PATH_CHARS).replace("\\", "/")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    return ("/" if text.startswith("/") else "") + "/".join(parts)


def checked_query(query: object) -> str:
    """Return the query, cut to its limit, because an agent may quote a whole error. Raises `ConfigError`."""
    if not isinstance(query, str) or not query.strip():
        raise ConfigError("query", query, "must be a text that describes what to recall")
    return whole(query.strip()[:QUERY_CHARS]).rstrip()


def checked_finding_id(name: object) -> str:
    """Return the id of a finding, of any store. Raises `ConfigError`."""
    return _id("finding_id", name)


def finding_id(codebase: Codebase, finding: Finding) -> str:
    """Return the id: of the scope, the path, the type and the content, so that a repeated finding replaces itself."""
    named = (codebase.org_id, codebase.codebase_id, finding.file_path, finding.finding_type, finding.content)
    return blake2b(canonical(list(named)).encode(), digest_size=16).hexdigest()


def _id(name: str, value: object) -> str:
    rule = f"must be a text of 1 to {ID_CHARS} printable characters"
    if not isinstance(value, str) or not 1 <= len(value) <= ID_CHARS or not value.isprintable() or not value.strip():
        raise ConfigError(name, value if not isinstance(value, str) else preview(value, SHOWN), rule)
    return value


def _text(name: str, value: object, most: int) -> str:
    if not isinstance(value, str):
        raise ConfigError(name, f"a value of type {type(value).__name__}", "must be a text")
    if len(value) > most:
        raise ConfigError(name, preview(value, SHOWN), f"must have at most {most:,} characters, not {len(value):,}")
    if "\x00" in value:
        raise ConfigError(name, preview(value, SHOWN), "must not contain NUL")
    return whole(value)


def _line(name: str, value: object, most: int) -> str:
    text = _text(name, value, most)
    if text != value or not text.isprintable():  # an unpaired surrogate was replaced
        raise ConfigError(name, preview(str(value), SHOWN), "must be one line of printable characters")
    return text


def _metadata(value: object) -> Mapping[str, JSON]:
    if not isinstance(value, Mapping):
        raise ConfigError("metadata", f"a value of type {type(value).__name__}", "must map names to JSON values")
    try:
        copied = storable(dict(value), METADATA_CHARS)
    except ValueError as exc:
        raise ConfigError("metadata", f"a mapping of {len(value)} names", f"must be JSON: {exc}") from exc
    assert isinstance(copied, Mapping)
    return copied
