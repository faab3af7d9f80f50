"""A result is unwrapped, and read as failed, unfinished, empty, or none of these; each case has look-alikes."""

from __future__ import annotations

import json

import pytest

from reasonblocks.types import Step

from .runs import after, bash, letters, step

UNFINISHED = (
    "CREATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS", "web-1   0/1   ContainerCreating   0   12s",
    "db-0   0/1   PodInitializing   0   3s", "downloading: 45%", "Progress: 12%", "[#####     ] 50%", "Pending",
    "queued (position 3)", '{"status": "running"}', '{"state": "PROVISIONING", "id": "i-1"}',
    "Your export is being prepared, please wait.", "Not ready yet.", "The build has not finished.", "Step 3/12",
    "epoch 3 of 10", "still compiling", "Retrying in 5s", "initializing the database", "Deploying to production",
    "2 of 8 replicas available, rolling out", "ETA 3 min", "Wird noch verarbeitet", "Der Auftrag läuft",
    "En cours de traitement", "En ejecución", "Em andamento", "Выполняется", "正在处理", "排队中", "処理中です",
    "진행 중", "Devam ediyor",
)  # fmt: skip
FINISHED = (
    "Downloading complete", "Processing finished", "web-1   0/1   CrashLoopBackOff   5   12m", "CREATE_FAILED",
    "ROLLBACK_COMPLETE", '{"status": "cancelled"}', "The latest job report: unemployment edged down to 7.2%.",
    "Your order has 3 items.",
)  # fmt: skip


@pytest.mark.parametrize("output", UNFINISHED)
def test_asking_without_any_movement_is_dead_from_the_eighth_answer_on(output: str) -> None:
    assert letters(*[step("get_build", {"id": "b-1"}, output)] * 9) == ".......AA"


@pytest.mark.parametrize("output", FINISHED)
def test_the_same_call_with_a_final_state_is_dead(output: str) -> None:
    assert letters(*[step("get_build", {"id": "b-1"}, output)] * 3) == ".AA"


def test_a_share_that_moves_is_movement() -> None:
    assert (
        letters(*[step("get_build", {"id": "b-1"}, f"downloading: {share}%") for share in range(10, 60, 4)]) == "." * 13
    )


@pytest.mark.parametrize(
    ("text", "output", "failed"),
    [
        ("SyntaxError: invalid syntax", "Line 1 is now SyntaxError: invalid syntax", False),
        ("raise ValueError('permission denied')", "1: raise ValueError('permission denied')", False),
        ("x = 1\nraise ValueError('permission denied')", "a.py:\nx = 1\nraise ValueError('permission denied')", False),
        ("no line", "Error: no line 'no line'. Lines: 1 to 6.", True),
        ("x = 1", "SyntaxError: invalid syntax in 'x = 1'", True),
        ("edit", "No edits were made in a.py", True),
        ("apply", "The patch does not apply", True),
        ("patch", "patch failed: a.py:3", True),
        ("Error", "Error: quota exceeded", True),
        ("SyntaxError: invalid syntax", "SyntaxError: invalid syntax (a.py, line 1)", True),
        ("match", "search did not match", True),
    ],
)
def test_words_that_an_edit_wrote_are_no_error_of_the_edit(text: str, output: str, failed: bool) -> None:
    assert after(step("edit_line", {"line": "1", "text": text}, output)).did.failed is failed


def test_an_error_is_never_waiting() -> None:
    output = "running 1 test\ntest sums ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; finished in 0.00s"
    account = after(bash("cargo test", output, is_error=True))
    assert account.did.failed
    assert account.did.checked
    assert not account.did.waiting


WRAPPED = (
    json.dumps({"exit_code": 1}),
    json.dumps({"exit_code": 2, "stdout": "", "stderr": "boom"}),
    json.dumps({"output": "make: *** [all] Error 1", "metadata": {"exit_code": 2, "duration_seconds": 0.1}}),
    json.dumps({"success": False, "error": "No such user"}),
    json.dumps({"isError": True, "content": [{"type": "text", "text": "Not allowed"}]}),
    json.dumps({"status": "error", "message": "Bad request"}),
    json.dumps(json.dumps({"ok": False, "error": "channel_not_found"})),
    "<returncode>1</returncode>\n<output>\nls: cannot access 'x'\n</output>",
    "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nboom",
    "Error: no such table: users",
    "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyError: 'a'",
    "错误：文件不存在",
    "操作失败",
    "エラーが発生しました",
    "오류: 권한이 없습니다",
    "Ошибка: доступ запрещён",
    "Fehler: Datei nicht gefunden",
    "Erreur : fichier introuvable",
    "Error: no se encontró el archivo",
)
FINE = (
    json.dumps({"exit_code": 0, "stdout": "done"}),
    json.dumps({"success": True, "error": None}),
    json.dumps({"errors": [], "rows": [[1]]}),
    "0 errors, 0 warnings",
    "No errors found.",
    "Error handling: see chapter 3",
    "<returncode>0</returncode>\n<output>\nerror.log\n</output>",
)


@pytest.mark.parametrize("output", WRAPPED)
def test_a_failure_is_seen_within_its_wrapper_and_in_other_languages(output: str) -> None:
    assert after(step("act", {"x": 1}, output)).did.failed


@pytest.mark.parametrize("output", FINE)
def test_what_only_mentions_errors_has_not_failed(output: str) -> None:
    assert not after(step("act", {"x": 1}, output)).did.failed


NOTHING = (
    'No matches found for "x"',
    "[]",
    "",
    json.dumps({"results": [], "total": 0}),
    json.dumps([{"type": "text", "text": "No results."}]),
    "0 results",
    "Nothing was found.",
    "Could not find any document about this.",
    "未找到结果",
    "見つかりませんでした",
    "Keine Treffer",
    "Sin resultados",
)


@pytest.mark.parametrize("output", NOTHING)
def test_the_third_search_in_vain_is_dead_and_the_next_hit_ends_the_row(output: str) -> None:
    vain = [step("search_docs", {"query": query}, output) for query in ("alpha", "beta", "gamma")]
    hit = step("search_docs", {"query": "delta"}, "delta.md: the setting is in section 3")
    new = step("search_docs", {"query": "epsilon"}, output)
    assert letters(*vain, hit, new, vain[0]) == "..C..A"


SILENT = (
    "tsc --noEmit", "go vet ./...", "mypy src", "ruff check .", "flake8", "eslint src", "cargo check", "bash -n run.sh",
    "python -m py_compile a.py", "terraform validate", "bin/test -C sympy", "PYTHONWARNINGS='ignore' bin/test sympy",
    "node_modules/.bin/tsc --noEmit", "/usr/bin/make",
)  # fmt: skip


@pytest.mark.parametrize("command", SILENT)
def test_a_check_that_is_silent_on_success_is_a_check_that_passed(command: str) -> None:
    account = after(bash("sed -i s/a/b/ a.py", ""), bash(command, ""))
    assert account.check is not None
    assert not account.check.failed
    assert account.check.since == 0


@pytest.mark.parametrize("command", SILENT)
def test_a_silent_check_after_each_change_is_work(command: str) -> None:
    steps: list[Step] = []
    for number in range(5):
        steps += [bash(f"sed -i s/a{number}/b/ a.py", ""), bash(command, "")]
    assert letters(*steps) == "." * 10


@pytest.mark.parametrize("command", ["/bin/ls src", "/usr/bin/grep -rn x src", "tools/show src"])
def test_a_program_by_its_path_is_what_its_name_says_and_no_check(command: str) -> None:
    assert after(bash("sed -i s/a/b/ a.py", ""), bash(command, "No issues found with this label.")).check is None


RED = "...\n* FAILED tests/test_units.py\n```\nTraceback (most recent call last):\nAssertionError\n1 failed, 3 passed"


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("IdentifyCode", "The search returned 25 code spans.\n\nIdentified the following code spans to be relevant"),
        ("edit_file", f"The file units.py has been edited. Here is a snippet of it.\n{'x = 1' * 40}\n{RED}"),
        ("bash", "Error processing line 1 of /lib/a.pth:\n\n  Traceback (most recent call last):\n"
                 "  ModuleNotFoundError: No module named '_distutils_hack'\n\nRemainder of file ignored\nall is well"),
    ],
    ids=["a count is no exit code", "tests after an edit", "what a damaged Python prints first"],
)  # fmt: skip
def test_these_have_not_failed(name: str, output: str) -> None:
    assert not after(
        step(name, {"command": "python run.py"} if name == "bash" else {"text": "y = 2"}, output)
    ).did.failed


def test_edits_that_leave_different_tests_red_are_work() -> None:
    said = f"The file a.py has been edited.\n{RED}"
    assert letters(*[step("edit_file", {"path": "a.py", "new": f"x = {at}"}, said) for at in range(5)]) == "....."


def test_a_search_that_fails_has_not_searched_in_vain() -> None:
    vain = [step("grep", {"pattern": f"a{at}"}, "No matches found") for at in range(2)]
    failed = step("grep", {"pattern": "b"}, "Error: ripgrep command failed: exit status 2", is_error=True)
    assert letters(*vain, failed) == "..."
