"""Stores a team's profiles, summaries of agents' runs, traces, and audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, select, update

from reasonblocks.monitors.profile import MAX_RUNS
from reasonblocks.util.text import storable_text

from ..values import AuditRow, Body, ProfileRow
from ._clean import body_in, id_of, name_of, read_json, write_json
from ._database import Database, add_new, upsert
from ._tables import agents, audit, profiles, traces


class Profiles:
    """The task profiles of all orgs."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def list(self, org_id: str) -> list[ProfileRow]:
        """Return the profiles of an org by name."""
        query = select(profiles).where(profiles.c.org_id == org_id).order_by(profiles.c.name)
        with self._db.reading() as connection:
            return [_profile(row) for row in connection.execute(query).mappings()]

    def get(self, org_id: str, name: str) -> ProfileRow | None:
        query = select(profiles).where(_profile_of(org_id, name))
        with self._db.reading() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else _profile(row)

    def put(self, org_id: str, name: str, weights: Mapping[str, float], *, revision: int | None) -> ProfileRow | None:
        """Store a profile, and return it with its new revision. Return None if the stored one has another revision.

        `revision` None or 0 is that of a profile that does not exist yet.
        """
        expected = revision or 0
        row = ProfileRow(name=name_of(name), weights=dict(weights), revision=expected + 1)
        columns = {"weights": write_json(dict(weights)), "revision": row.revision}
        with self._db.writing() as connection:
            if expected:
                one = and_(_profile_of(org_id, name), profiles.c.revision == expected)
                return row if connection.execute(update(profiles).where(one).values(columns)).rowcount else None
            return row if add_new(connection, profiles, {"org_id": org_id, "name": row.name, **columns}) else None


def _profile_of(org_id: str, name: str) -> ColumnElement[bool]:
    return and_(profiles.c.org_id == org_id, profiles.c.name == name_of(name))


def _profile(row: Mapping[Any, Any]) -> ProfileRow:
    return ProfileRow(name=row["name"], weights=read_json(row["weights"]), revision=row["revision"])


class Agents:
    """The summaries of each agent's newest finished runs, from which their patience is learned.

    The project "" has those that keys of the whole org have sent. An agent has other summaries in each project.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    def read(
        self, org_id: str, agent_name: str, task_profile: str, but_run: str, *, project_id: str = ""
    ) -> list[Body]:
        """Return the summaries except that of the run `but_run`, the newest last."""
        one = _agent_of(org_id, project_id, agent_name, task_profile)
        query = select(agents.c.summary).where(one, agents.c.run_id != id_of(but_run))
        newest = query.order_by(agents.c.added.desc(), agents.c.run_id.desc()).limit(MAX_RUNS)
        with self._db.reading() as connection:
            texts = connection.execute(newest).scalars().all()
        return [body_in(text) for text in reversed(texts)]

    def add(
        self,
        org_id: str,
        agent_name: str,
        task_profile: str,
        run_id: str,
        summary: Body,
        now: float,
        *,
        project_id: str = "",
    ) -> None:
        """Add or replace the summary of a run. Delete the oldest one beyond the limit."""
        one = _agent_of(org_id, project_id, agent_name, task_profile)
        row = {
            "org_id": org_id,
            "project_id": name_of(project_id),
            "agent_name": name_of(agent_name),
            "task_profile": name_of(task_profile),
        }
        newest = select(agents.c.run_id).where(one).order_by(agents.c.added.desc(), agents.c.run_id.desc())
        with self._db.writing() as connection:
            upsert(connection, agents, {**row, "run_id": id_of(run_id), "added": now, "summary": write_json(summary)})
            old = connection.execute(newest.offset(MAX_RUNS).limit(MAX_RUNS)).scalars().all()
            if old:
                connection.execute(delete(agents).where(one, agents.c.run_id.in_(old)))

    def list(self, org_id: str) -> list[tuple[str, str, str, int, float]]:
        """Return project, name, task profile, number of runs and newest time of each agent, the newest first."""
        newest, named = func.max(agents.c.added), (agents.c.project_id, agents.c.agent_name, agents.c.task_profile)
        query = (
            select(*named, func.count(), newest)
            .where(agents.c.org_id == org_id)
            .group_by(*named)
            .order_by(newest.desc(), *named)
        )
        with self._db.reading() as connection:
            return [(*key, runs, added) for *key, runs, added in connection.execute(query)]

    def delete(self, org_id: str, agent_name: str, task_profile: str, *, project_id: str = "") -> bool:
        """Delete the summaries of an agent. Return False if there are none."""
        one = _agent_of(org_id, project_id, agent_name, task_profile)
        with self._db.writing() as connection:
            return bool(connection.execute(delete(agents).where(one)).rowcount)


def _agent_of(org_id: str, project_id: str, agent_name: str, task_profile: str) -> ColumnElement[bool]:
    return and_(
        agents.c.org_id == org_id,
        agents.c.project_id == name_of(project_id),
        agents.c.agent_name == name_of(agent_name),
        agents.c.task_profile == name_of(task_profile),
    )


class Audit:
    """The changes that keys have made."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, org_id: str, key_id: str, action: str, target: str, now: float) -> None:
        row = {
            "org_id": org_id,
            "at": now,
            "key_id": key_id,
            "action": storable_text(action),
            "target": name_of(target),
        }
        with self._db.writing() as connection:
            connection.execute(audit.insert(), row)

    def list(self, org_id: str, *, limit: int, before: int | None = None) -> list[AuditRow]:
        """Return the newest changes, or the newest ones before the given change."""
        query = select(*[audit.c[name] for name in AuditRow.__dataclass_fields__]).where(audit.c.org_id == org_id)
        if before is not None:
            query = query.where(audit.c.id < before)
        with self._db.reading() as connection:
            rows = connection.execute(query.order_by(audit.c.id.desc()).limit(limit)).mappings()
            return [AuditRow(**row) for row in rows]


class Traces:
    """Finished runs that were sent for `reasonblocks learn`."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, org_id: str, trace_id: str, body: Body, now: float, *, project_id: str | None = None) -> bool:
        """Add a trace, or replace the one of this id. Return False if a caller of a project finds it in another one."""
        name = id_of(trace_id)
        own = {} if project_id is None else {"project_id": project_id}
        row = {
            "org_id": org_id,
            "trace_id": name,
            "created": now,
            "body": write_json({**body, "trace_id": name, **own}),
        }
        known = select(traces.c.body).where(traces.c.org_id == org_id, traces.c.trace_id == name)
        with self._db.writing() as connection:
            if project_id is not None:
                before = connection.execute(known.with_for_update()).scalar()
                if before is not None and body_in(before).get("project_id") != project_id:
                    return False
            upsert(connection, traces, row)
        return True

    def list(self, org_id: str, limit: int, after: str | None = None) -> list[Body]:
        """Return traces in the order of their ids, beginning after the given id."""
        query = select(traces.c.body).where(traces.c.org_id == org_id).order_by(traces.c.trace_id).limit(limit)
        if after is not None:
            query = query.where(traces.c.trace_id > id_of(after))
        with self._db.reading() as connection:
            return [body_in(text) for text in connection.execute(query).scalars()]
