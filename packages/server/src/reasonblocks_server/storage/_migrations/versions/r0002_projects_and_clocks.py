"""Keeps the summaries of each project's runs apart, and a run's start by its client's clock beside its own."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Float, PrimaryKeyConstraint, Text

revision = "0002"
down_revision: str | None = "0001"
KEPT = "org_id, agent_name, task_profile, run_id, added, summary"


def upgrade() -> None:
    op.rename_table("agents", "agents_before")
    op.create_table(
        "agents",
        Column("org_id", Text(), nullable=False),
        Column("project_id", Text(), nullable=False),
        Column("agent_name", Text(), nullable=False),
        Column("task_profile", Text(), nullable=False),
        Column("run_id", Text(), nullable=False),
        Column("added", Float(53), nullable=False),
        Column("summary", Text(), nullable=False),
        PrimaryKeyConstraint("org_id", "project_id", "agent_name", "task_profile", "run_id", name="agents_of_projects"),
    )
    op.execute(f"INSERT INTO agents (project_id, {KEPT}) SELECT '', {KEPT} FROM agents_before")
    op.drop_table("agents_before")
    op.add_column("runs", Column("client_started", Float(53), nullable=False, server_default="0"))
    op.execute(
        "UPDATE runs SET client_started = started, started = CASE WHEN started > seen THEN seen ELSE started END"
    )
