"""Creates the first tables."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    Float,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Text,
    text,
)
from sqlalchemy.types import TypeEngine

revision = "0001"
down_revision: str | None = None

TEXT, DATE, NUMBER, FLAG, BYTES = Text(), Date(), Float(53), Boolean(), LargeBinary()
COUNT, INT, SMALL = BigInteger(), Integer(), SmallInteger()
IDENTITY = BigInteger().with_variant(Integer(), "sqlite")


def upgrade() -> None:
    for create in (_agents, _audit, _keys, _links, _logins, _notes, _orgs, _profiles, _runs, _steps, _traces):
        create()


def _column(name: str, kind: TypeEngine[Any]) -> Column[Any]:
    return Column(name, kind, nullable=False)


def _maybe(name: str, kind: TypeEngine[Any]) -> Column[Any]:
    return Column(name, kind)


def _agents() -> None:
    op.create_table(
        "agents",
        _column("org_id", TEXT),
        _column("agent_name", TEXT),
        _column("task_profile", TEXT),
        _column("run_id", TEXT),
        _column("added", NUMBER),
        _column("summary", TEXT),
        PrimaryKeyConstraint("org_id", "agent_name", "task_profile", "run_id"),
    )


def _audit() -> None:
    op.create_table(
        "audit",
        _column("id", IDENTITY),
        _column("org_id", TEXT),
        _column("at", NUMBER),
        _column("key_id", TEXT),
        _column("action", TEXT),
        _column("target", TEXT),
        PrimaryKeyConstraint("id"),
    )
    op.create_index("audit_org", "audit", ["org_id", "at"])


def _keys() -> None:
    op.create_table(
        "keys",
        _column("key_id", TEXT),
        _column("org_id", TEXT),
        _maybe("project_id", TEXT),
        _column("name", TEXT),
        _column("secret_hash", BYTES),
        _column("scopes", TEXT),
        _column("created", NUMBER),
        _maybe("expires", NUMBER),
        _maybe("revoked", NUMBER),
        _maybe("used", NUMBER),
        _maybe("refused", NUMBER),
        PrimaryKeyConstraint("key_id"),
    )
    op.create_index("keys_org", "keys", ["org_id"])


def _links() -> None:
    op.create_table(
        "links",
        _column("link_hash", BYTES),
        _column("key_id", TEXT),
        _column("expires", NUMBER),
        PrimaryKeyConstraint("link_hash"),
    )


def _logins() -> None:
    op.create_table(
        "logins",
        _column("login_hash", BYTES),
        _column("key_id", TEXT),
        _column("expires", NUMBER),
        PrimaryKeyConstraint("login_hash"),
    )


def _notes() -> None:
    op.create_table(
        "notes",
        _column("note_id", TEXT),
        _column("org_id", TEXT),
        _column("run_id", TEXT),
        _column("text", TEXT),
        _column("key_id", TEXT),
        _column("state", TEXT),
        _maybe("told_step", COUNT),
        _column("created", NUMBER),
        _column("expires", NUMBER),
        PrimaryKeyConstraint("note_id"),
    )
    op.create_index("notes_run", "notes", ["org_id", "run_id", "state"])
    op.create_index("notes_state", "notes", ["state", "created"])


def _orgs() -> None:
    op.create_table(
        "orgs",
        _column("org_id", TEXT),
        _column("retention_days", INT),
        PrimaryKeyConstraint("org_id"),
    )


def _profiles() -> None:
    op.create_table(
        "profiles",
        _column("org_id", TEXT),
        _column("name", TEXT),
        _column("weights", TEXT),
        _column("revision", INT),
        PrimaryKeyConstraint("org_id", "name"),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        _column("org_id", TEXT),
        _column("run_id", TEXT),
        _column("day", DATE),
        _column("origin", SMALL),
        _column("started", NUMBER),
        _column("seen", NUMBER),
        _maybe("finished", NUMBER),
        _maybe("outcome", TEXT),
        _column("agent_name", TEXT),
        _column("task", TEXT),
        _column("model", TEXT),
        _column("framework", TEXT),
        _column("project_id", TEXT),
        _column("mode", TEXT),
        _maybe("parent_run_id", TEXT),
        _maybe("experiment_id", TEXT),
        _maybe("arm", TEXT),
        _maybe("unit_id", TEXT),
        _column("steps", COUNT),
        _column("last_step", COUNT),
        _maybe("state", TEXT),
        _maybe("failure_type", TEXT),
        _column("failure_step", COUNT),
        _column("injections", COUNT),
        _maybe("tokens", COUNT),
        _column("takes_notes", FLAG),
        _maybe("summary", TEXT),
        _maybe("finish", TEXT),
        _maybe("body", TEXT),
        PrimaryKeyConstraint("org_id", "run_id"),
    )
    op.create_index("runs_agent", "runs", ["org_id", "agent_name", text("started DESC"), "run_id"])
    op.create_index("runs_changed", "runs", ["seen"])
    op.create_index("runs_experiment", "runs", ["org_id", "experiment_id", text("started DESC"), "run_id"])
    op.create_index("runs_parent", "runs", ["org_id", "parent_run_id", text("started DESC"), "run_id"])
    op.create_index("runs_project", "runs", ["org_id", "project_id", text("started DESC"), "run_id"])
    op.create_index("runs_seen", "runs", ["org_id", "seen"])
    op.create_index("runs_started", "runs", ["org_id", text("started DESC"), "run_id"])


def _steps() -> None:
    op.create_table(
        "steps",
        _column("day", DATE),
        _column("org_id", TEXT),
        _column("run_id", TEXT),
        _column("step_index", COUNT),
        _column("at", NUMBER),
        _column("fsm_state", TEXT),
        _maybe("difficulty", NUMBER),
        _maybe("composite", NUMBER),
        _maybe("failure_type", TEXT),
        _column("gate", TEXT),
        _column("skipped", TEXT),
        _maybe("model", TEXT),
        _maybe("tokens", COUNT),
        _column("scores", TEXT),
        _column("fired", TEXT),
        _column("sources", TEXT),
        _column("withheld", TEXT),
        _column("final", FLAG),
        _column("error", FLAG),
        _column("stopped", FLAG),
        _column("doubts", FLAG),
        _column("dropped", INT),
        _column("body", TEXT),
        PrimaryKeyConstraint("day", "org_id", "run_id", "step_index"),
    )


def _traces() -> None:
    op.create_table(
        "traces",
        _column("org_id", TEXT),
        _column("trace_id", TEXT),
        _column("created", NUMBER),
        _column("body", TEXT),
        PrimaryKeyConstraint("org_id", "trace_id"),
    )
    op.create_index("traces_created", "traces", ["org_id", "created"])
