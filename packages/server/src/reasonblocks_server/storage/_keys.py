"""Stores keys, logins and one-time login links. Of each secret, only its SHA-256 is stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Any

from sqlalchemy import Table, delete, select, update

from reasonblocks.util.text import storable_text

from ..values import SCOPES, KeyRow, Scope
from ._database import Database
from ._tables import keys, links, logins

SECRET_BYTES = 32
COLUMNS = [keys.c[name] for name in KeyRow.__dataclass_fields__]


class Keys:
    """The keys of all orgs."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(
        self,
        org_id: str,
        *,
        name: str,
        scopes: Collection[Scope],
        now: float,
        project_id: str | None = None,
        expires: float | None = None,
    ) -> tuple[KeyRow, str]:
        """Create a key. Return it with its secret, which is not stored."""
        key_id, secret = token_hex(8), token_urlsafe(SECRET_BYTES)
        row = KeyRow(
            key_id=key_id,
            org_id=org_id,
            name=storable_text(name),
            scopes=tuple(scope for scope in SCOPES if scope in scopes),
            created=now,
            project_id=project_id,
            expires=expires,
        )
        columns = {column.name: getattr(row, column.name) for column in COLUMNS}
        stored = {**columns, "scopes": " ".join(row.scopes), "secret_hash": _hash(secret)}
        with self._db.writing() as connection:
            connection.execute(keys.insert(), stored)
        return row, f"rbk_{key_id}_{secret}"

    def find(self, key_id: str) -> tuple[KeyRow, bytes] | None:
        """Return a key, even a revoked one, with the SHA-256 of its secret: the part after the second underscore."""
        query = select(*COLUMNS, keys.c.secret_hash).where(keys.c.key_id == storable_text(key_id))
        with self._db.reading() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else (_key(row), bytes(row["secret_hash"]))

    def list(self, org_id: str) -> list[KeyRow]:
        """Return the keys of an org, including revoked ones, the newest first."""
        query = select(*COLUMNS).where(keys.c.org_id == org_id).order_by(keys.c.created.desc(), keys.c.key_id)
        with self._db.reading() as connection:
            return [_key(row) for row in connection.execute(query).mappings()]

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all keys that are not revoked."""
        with self._db.reading() as connection:
            return tuple(connection.execute(select(keys.c.key_id).where(keys.c.revoked.is_(None))).scalars())

    def orgs(self) -> tuple[str, ...]:
        """Return the orgs that have keys."""
        with self._db.reading() as connection:
            return tuple(connection.execute(select(keys.c.org_id).distinct()).scalars())

    def revoke(self, org_id: str, key_id: str, now: float) -> bool:
        """Revoke a key. Return False if the org has no such key, or had it revoked before."""
        one = (keys.c.org_id == org_id, keys.c.key_id == storable_text(key_id), keys.c.revoked.is_(None))
        with self._db.writing() as connection:
            return bool(connection.execute(update(keys).where(*one).values(revoked=now)).rowcount)

    def used(self, key_ids: Collection[str], now: float) -> None:
        """Record the last use of keys."""
        with self._db.writing() as connection:
            connection.execute(update(keys).where(keys.c.key_id.in_(sorted(key_ids))).values(used=now))

    def refused(self, key_id: str, now: float) -> None:
        """Record the last refusal of a request with this key's id."""
        with self._db.writing() as connection:
            connection.execute(update(keys).where(keys.c.key_id == storable_text(key_id)).values(refused=now))

    def login(self, key_id: str, *, expires: float) -> str:
        """Return the token of a new login with this key."""
        return self._token(logins, "login_hash", key_id, expires)

    def login_key(self, token: str, now: float) -> KeyRow | None:
        """Return the key of a login; None if the login or the key has expired or was ended."""
        query = (
            select(*COLUMNS)
            .join_from(logins, keys, logins.c.key_id == keys.c.key_id)
            .where(logins.c.login_hash == _hash(token), logins.c.expires > now)
        )
        with self._db.reading() as connection:
            row = connection.execute(query).mappings().first()
        key = None if row is None else _key(row)
        return key if key is not None and _lives(key, now) else None

    def logout(self, token: str) -> None:
        with self._db.writing() as connection:
            connection.execute(delete(logins).where(logins.c.login_hash == _hash(token)))

    def link(self, key_id: str, *, expires: float) -> str:
        """Return the token of a new link that logs in once."""
        return self._token(links, "link_hash", key_id, expires)

    def take_link(self, token: str, now: float) -> str | None:
        """Use up a link. Return the id of its key; None if the link does not exist or has expired."""
        one = links.c.link_hash == _hash(token)
        with self._db.writing() as connection:
            row = connection.execute(select(links.c.key_id, links.c.expires).where(one)).first()
            taken = connection.execute(delete(links).where(one)).rowcount
        return row.key_id if row is not None and taken and row.expires > now else None

    def _token(self, table: Table, name: str, key_id: str, expires: float) -> str:
        token = token_urlsafe(SECRET_BYTES)
        with self._db.writing() as connection:
            connection.execute(table.insert(), {name: _hash(token), "key_id": key_id, "expires": expires})
        return token


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _key(row: Mapping[Any, Any]) -> KeyRow:
    columns = {column.name: row[column.name] for column in COLUMNS}
    return KeyRow(**{**columns, "scopes": tuple(row["scopes"].split())})


def _lives(key: KeyRow, now: float) -> bool:
    return key.revoked is None and (key.expires is None or key.expires > now)
