"""Which part a tool call plays."""

from __future__ import annotations

import pytest

from reasonblocks.monitors.roles import is_shell, roles_of


def roles(command: str) -> tuple[str, ...]:
    return roles_of("bash", command, f"command={command}", {})


@pytest.mark.parametrize(
    "command",
    [
        "cat > lib/retry.py <<'E'\ndef retry(): ...\nE",
        "cat <<EOF > notes.md\nRun pytest, then grep the log.\nEOF",
        "cat >> api/models.py << E\nimport pytest\nE",
        "tee config.toml <<'END'\ncat = 1\nEND",
    ],
)
def test_a_file_written_from_a_here_document_is_an_edit_alone(command: str) -> None:
    assert roles(command) == ("edit",)


def test_what_comes_after_a_here_document_counts() -> None:
    assert roles("cat > t.py <<'E'\ndef test(): ...\nE\npytest -q t.py") == ("test", "edit")


def test_a_here_document_without_an_end_is_an_edit_alone() -> None:
    assert roles("cat > t.py <<'E'\nimport pytest\n") == ("edit",)


@pytest.mark.parametrize("command", ["cat lib/retry.py", "cd lib\ncat retry.py", "git diff; cat retry.py"])
def test_a_file_shown_is_read(command: str) -> None:
    assert roles(command) == ("read",)


def test_a_comparison_in_a_query_changes_nothing() -> None:
    assert roles("SELECT model FROM cars WHERE weight > price AND year > 1980") == ("read",)


def test_a_comparison_with_a_number_changes_nothing() -> None:
    assert "edit" not in roles("awk '$1 > 5' table.txt")


@pytest.mark.parametrize(
    ("name", "runs"), [("bash", True), ("execute_command", True), ("run_sql", False), ("search_kb", False)]
)
def test_a_shell_is_told_by_its_name(name: str, runs: bool) -> None:
    assert is_shell(name) is runs


@pytest.mark.parametrize("name", ["run_tests", "run_checks", "checkBuild", "lint"])
def test_a_tool_that_checks_is_a_test(name: str) -> None:
    assert roles_of(name, "", "", {}) == ("test",)
