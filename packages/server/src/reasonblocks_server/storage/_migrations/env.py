"""Runs the migrations in the transaction that the caller has opened."""

from __future__ import annotations

from alembic import context

from reasonblocks_server.storage._tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
