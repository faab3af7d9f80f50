"""Creates, lists and revokes an org's keys by one set of rules, for the API and the dashboard."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import ApiError
from .server import Server
from .values import KeyRow, Principal, Scope


def create_key(
    server: Server,
    caller: Principal,
    *,
    name: str,
    scopes: Sequence[Scope],
    project_id: str | None,
    expires: float | None,
    now: float,
) -> tuple[KeyRow, str]:
    """Create a key of the caller's org; return it and its text, which is not stored.

    It belongs to `project_id`, by default the caller's. Raises `ApiError` 403 if it would allow more than the caller's
    key does: other scopes, another project, or a longer life.
    """
    if beyond := sorted({*scopes} - caller.scopes):
        raise ApiError(403, f"the key lacks the scopes {', '.join(beyond)}, so it cannot give them to another key")
    project = project_id or caller.project_id
    if caller.project_id not in (None, project):
        raise ApiError(
            403, f"the key belongs to the project {caller.project_id!r}, and can create keys for that project only"
        )
    if caller.expires is not None and (expires is None or expires > caller.expires):
        left = int(caller.expires - now)
        raise ApiError(403, f"the key expires in {left} s, so it can create no key that is valid for longer")
    row, secret = server.storage.keys.add(
        caller.org_id, name=name, scopes=tuple(dict.fromkeys(scopes)), project_id=project, expires=expires, now=now
    )
    server.auth.forget(row.key_id)
    server.audit(caller, "key.add", f"{row.key_id} {' '.join(row.scopes)}")
    return row, secret


def visible_keys(server: Server, caller: Principal) -> list[KeyRow]:
    """Return the keys of the caller's org, or of its project."""
    rows = server.storage.keys.list(caller.org_id)
    return [row for row in rows if caller.project_id in (None, row.project_id)]


def revoke_key(server: Server, caller: Principal, key_id: str, now: float) -> None:
    """Revoke a key. Other workers may accept it for up to 30 seconds. Raises `ApiError` 404 if it is not visible."""
    if all(row.key_id != key_id for row in visible_keys(server, caller)):
        raise ApiError(404, f"there is no key {key_id!r}")
    if server.storage.keys.revoke(caller.org_id, key_id, now):
        server.audit(caller, "key.revoke", key_id)
    server.auth.forget(key_id)
