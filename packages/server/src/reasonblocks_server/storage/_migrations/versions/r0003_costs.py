"""Adds what calls and runs cost."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Float

revision = "0003"
down_revision: str | None = "0002"


def upgrade() -> None:
    for table in ("runs", "steps"):
        op.add_column(table, Column("cost_usd", Float(53)))
