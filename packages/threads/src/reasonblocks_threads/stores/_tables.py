"""The tables of threads, the same in SQLite and PostgreSQL."""

from __future__ import annotations

FORM = 2
"""The form of the tables. A newer one is refused, an older one is changed into it."""
CHANGES = {1: ("DROP TABLE call",)}
"""The statements that change tables of an older form into those of the next one."""
SCHEMA = "reasonblocks_threads"
"""PostgreSQL's schema of the tables."""

_TABLES = """
CREATE TABLE thread (
  id TEXT PRIMARY KEY, org_id TEXT NOT NULL, key TEXT NOT NULL, family TEXT, is_live INTEGER NOT NULL,
  kind TEXT NOT NULL, title TEXT NOT NULL, phase TEXT NOT NULL, stage TEXT NOT NULL, version {int} NOT NULL,
  run_id TEXT, parent TEXT, card TEXT, opened_at {real} NOT NULL, changed_at {real} NOT NULL,
  head TEXT NOT NULL);
CREATE UNIQUE INDEX thread_key ON thread (org_id, key);
CREATE UNIQUE INDEX thread_family ON thread (org_id, family) WHERE is_live = 1 AND family IS NOT NULL;
CREATE INDEX thread_families ON thread (org_id, family, opened_at) WHERE family IS NOT NULL;
CREATE INDEX thread_live ON thread (org_id, changed_at, id) WHERE is_live = 1;
CREATE INDEX thread_changed ON thread (org_id, changed_at, id);
CREATE INDEX thread_run ON thread (run_id, changed_at) WHERE run_id IS NOT NULL;
CREATE INDEX thread_parent ON thread (parent) WHERE parent IS NOT NULL;

CREATE TABLE event (
  position {number}, org_id TEXT NOT NULL, thread_id TEXT NOT NULL, seq {int} NOT NULL, kind TEXT NOT NULL,
  form INTEGER NOT NULL, actor_kind TEXT NOT NULL, actor TEXT NOT NULL, at {real} NOT NULL, command_id TEXT NOT NULL,
  caused_by TEXT, data TEXT NOT NULL);
CREATE UNIQUE INDEX event_seq ON event (thread_id, seq);

CREATE TABLE command (
  id TEXT PRIMARY KEY, thread_id TEXT NOT NULL, content TEXT NOT NULL, first {int} NOT NULL, last {int} NOT NULL);

CREATE TABLE card (
  id TEXT PRIMARY KEY, org_id TEXT NOT NULL, thread_id TEXT NOT NULL, run_id TEXT, opened_at {real} NOT NULL,
  deferred_until {real}, state TEXT NOT NULL, answered_by TEXT, answer TEXT, body TEXT NOT NULL);
CREATE UNIQUE INDEX card_open ON card (thread_id) WHERE state = 'open';
CREATE INDEX card_oldest ON card (opened_at, id) WHERE state = 'open';

CREATE TABLE work (
  number {number}, id TEXT NOT NULL UNIQUE, org_id TEXT NOT NULL, thread_id TEXT NOT NULL, kind TEXT NOT NULL,
  entered {int} NOT NULL, due_at {real} NOT NULL, urgency {int} NOT NULL, rank {real} NOT NULL,
  attempts INTEGER NOT NULL, most {int}, lease TEXT, lease_s {real}, leased_until {real}, needs TEXT NOT NULL,
  error TEXT NOT NULL, data TEXT NOT NULL);
CREATE UNIQUE INDEX work_infer ON work (thread_id) WHERE kind = 'infer';
CREATE UNIQUE INDEX work_execute ON work (thread_id) WHERE kind = 'execute';
CREATE INDEX work_thread ON work (thread_id);
CREATE INDEX work_due ON work (due_at);
CREATE INDEX work_tried ON work (attempts) WHERE attempts > 0;

CREATE TABLE letter (
  id TEXT PRIMARY KEY, thread_id TEXT NOT NULL, run_id TEXT NOT NULL, text TEXT NOT NULL, at {real} NOT NULL,
  state TEXT NOT NULL, calls {int} NOT NULL);
CREATE INDEX letter_run ON letter (run_id, state, at);

CREATE TABLE blob (hash TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)
"""

_SQLITE_TRIGGERS = (
    "CREATE TRIGGER event_update BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END",
    "CREATE TRIGGER event_delete BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END",
    """CREATE TRIGGER event_dense BEFORE INSERT ON event
    WHEN NEW.seq <> 1 + coalesce((SELECT max(seq) FROM event WHERE thread_id = NEW.thread_id), 0)
    BEGIN SELECT RAISE(ABORT, 'the log would have a gap'); END""",
)
_POSTGRES_TRIGGERS = (
    """CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION 'the log is append-only'; END$$""",
    """CREATE TRIGGER event_change BEFORE UPDATE OR DELETE OR TRUNCATE ON event
    FOR EACH STATEMENT EXECUTE FUNCTION append_only()""",
    """CREATE FUNCTION dense() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE last bigint;
    BEGIN
      EXECUTE format('SELECT max(seq) FROM %I.event WHERE thread_id = $1', TG_TABLE_SCHEMA)
        INTO last USING NEW.thread_id;
      IF NEW.seq <> 1 + coalesce(last, 0) THEN RAISE EXCEPTION 'the log would have a gap'; END IF;
      RETURN NEW;
    END$$""",
    "CREATE TRIGGER event_dense BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION dense()",
)


def changes(form: int) -> tuple[str, ...]:
    """Return the statements that change tables of this form into those of the present one."""
    return tuple(statement for older in range(form, FORM) for statement in CHANGES[older])


def _tables(**types: str) -> tuple[str, ...]:
    return tuple(_TABLES.format(**types).strip().split(";\n"))


SQLITE = (*_tables(int="INTEGER", real="REAL", number="INTEGER PRIMARY KEY"), *_SQLITE_TRIGGERS)
POSTGRES = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    *_tables(int="BIGINT", real="DOUBLE PRECISION", number="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    *_POSTGRES_TRIGGERS,
    "CREATE TABLE form (number INTEGER NOT NULL)",
    f"INSERT INTO form VALUES ({FORM})",
)
