"""Defines the tables, which are the same in SQLite and PostgreSQL.

Every key begins with, or contains, the org. `steps` is keyed by day first, so that PostgreSQL can partition it by range
of day. JSON is kept as text: PostgreSQL's own JSON type stores no NUL characters.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
)

METADATA = MetaData()
Number = Float(53)
"""A double, also in PostgreSQL."""
Identity = BigInteger().with_variant(Integer, "sqlite")
"""An auto-incremented number. SQLite needs a column of the type INTEGER for this."""


def _key(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True)


def _text(name: str, *, empty: bool = False) -> Column[str]:
    return Column(name, Text, nullable=empty)


orgs = Table("orgs", METADATA, _key("org_id"), Column("retention_days", Integer, nullable=False))
keys = Table(
    "keys",
    METADATA,
    _key("key_id"),
    _text("org_id"),
    _text("project_id", empty=True),
    _text("name"),
    Column("secret_hash", LargeBinary, nullable=False),
    _text("scopes"),
    Column("created", Number, nullable=False),
    Column("expires", Number),
    Column("revoked", Number),
    Column("used", Number),
    Column("refused", Number),
    Index("keys_org", "org_id"),
)
logins = Table(
    "logins",
    METADATA,
    Column("login_hash", LargeBinary, primary_key=True),
    _text("key_id"),
    Column("expires", Number, nullable=False),
)
links = Table(
    "links",
    METADATA,
    Column("link_hash", LargeBinary, primary_key=True),
    _text("key_id"),
    Column("expires", Number, nullable=False),
)
audit = Table(
    "audit",
    METADATA,
    Column("id", Identity, primary_key=True, autoincrement=True),
    _text("org_id"),
    Column("at", Number, nullable=False),
    _text("key_id"),
    _text("action"),
    _text("target"),
    Index("audit_org", "org_id", "at"),
)
profiles = Table(
    "profiles",
    METADATA,
    _key("org_id"),
    _key("name"),
    _text("weights"),
    Column("revision", Integer, nullable=False),
)
agents = Table(
    "agents",
    METADATA,
    _key("org_id"),
    _key("project_id"),
    _key("agent_name"),
    _key("task_profile"),
    _key("run_id"),
    Column("added", Number, nullable=False),
    _text("summary"),
)
traces = Table(
    "traces",
    METADATA,
    _key("org_id"),
    _key("trace_id"),
    Column("created", Number, nullable=False),
    _text("body"),
    Index("traces_created", "org_id", "created"),
)
runs = Table(
    "runs",
    METADATA,
    _key("org_id"),
    _key("run_id"),
    Column("day", Date, nullable=False),
    Column("origin", SmallInteger, nullable=False),
    Column("started", Number, nullable=False),
    Column("client_started", Number, nullable=False, server_default="0"),
    Column("seen", Number, nullable=False),
    Column("finished", Number),
    _text("outcome", empty=True),
    _text("agent_name"),
    _text("task"),
    _text("model"),
    _text("framework"),
    _text("project_id"),
    _text("mode"),
    _text("parent_run_id", empty=True),
    _text("experiment_id", empty=True),
    _text("arm", empty=True),
    _text("unit_id", empty=True),
    Column("steps", BigInteger, nullable=False),
    Column("last_step", BigInteger, nullable=False),
    _text("state", empty=True),
    _text("failure_type", empty=True),
    Column("failure_step", BigInteger, nullable=False),
    Column("injections", BigInteger, nullable=False),
    Column("tokens", BigInteger),
    Column("cost_usd", Number),
    Column("takes_notes", Boolean, nullable=False),
    _text("summary", empty=True),
    _text("finish", empty=True),
    _text("body", empty=True),
)
Index("runs_started", runs.c.org_id, runs.c.started.desc(), runs.c.run_id)
Index("runs_agent", runs.c.org_id, runs.c.agent_name, runs.c.started.desc(), runs.c.run_id)
Index("runs_project", runs.c.org_id, runs.c.project_id, runs.c.started.desc(), runs.c.run_id)
Index("runs_seen", runs.c.org_id, runs.c.seen)
Index("runs_experiment", runs.c.org_id, runs.c.experiment_id, runs.c.started.desc(), runs.c.run_id)
Index("runs_parent", runs.c.org_id, runs.c.parent_run_id, runs.c.started.desc(), runs.c.run_id)
Index("runs_changed", runs.c.seen)
steps = Table(
    "steps",
    METADATA,
    Column("day", Date, primary_key=True),
    _key("org_id"),
    _key("run_id"),
    Column("step_index", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Number, nullable=False),
    _text("fsm_state"),
    Column("difficulty", Number),
    Column("composite", Number),
    _text("failure_type", empty=True),
    _text("gate"),
    _text("skipped"),
    _text("model", empty=True),
    Column("tokens", BigInteger),
    Column("cost_usd", Number),
    _text("scores"),
    _text("fired"),
    _text("sources"),
    _text("withheld"),
    Column("final", Boolean, nullable=False),
    Column("error", Boolean, nullable=False),
    Column("stopped", Boolean, nullable=False),
    Column("doubts", Boolean, nullable=False),
    Column("dropped", Integer, nullable=False),
    _text("body"),
)
notes = Table(
    "notes",
    METADATA,
    _key("note_id"),
    _text("org_id"),
    _text("run_id"),
    _text("text"),
    _text("key_id"),
    _text("state"),
    Column("told_step", BigInteger),
    Column("created", Number, nullable=False),
    Column("expires", Number, nullable=False),
    Index("notes_run", "org_id", "run_id", "state"),
    Index("notes_state", "state", "created"),
)
