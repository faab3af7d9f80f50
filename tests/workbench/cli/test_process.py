"""The command as a process: pipes, signals, imports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.workbench.cli.conftest import Write

COMMAND = [sys.executable, "-m", "reasonblocks"]
RUN = {"steps": [{"thought": "I look.", "action": "ls", "action_input": ".", "observation": "x"}] * 9}


def run(*argv: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run([*COMMAND, *argv], capture_output=True, text=True, check=False, env=environment, timeout=60)


def test_the_module_is_the_command(write: Write) -> None:
    done = run("replay", write("a.jsonl", RUN), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)["steps"]) == 9


def test_help_names_the_commands() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert [name for name in ("replay", "doctor") if name not in done.stdout] == []


def test_the_version_is_said() -> None:
    assert run("--version").stdout.startswith("reasonblocks ")


@pytest.mark.parametrize(
    ("words", "completed"),
    [("rep", ["replay", "report"]), ("memory fo", ["forget"]), ("replay --only", ["--only-injected"])],
)
def test_a_shell_is_given_completions(words: str, completed: list[str]) -> None:
    asked = {"COMP_WORDS": f"reasonblocks {words}", "COMP_CWORD": str(len(words.split()))}
    assert run(_REASONBLOCKS_COMPLETE="complete_bash", **asked).stdout.split() == completed


def test_a_reader_that_leaves_early_is_no_error(write: Write) -> None:
    path = write("a.jsonl", *[RUN] * 300)
    with subprocess.Popen(
        [*COMMAND, "replay", path, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout
        assert child.stderr
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals and fifos")
def test_ctrl_c_ends_it_quietly(write: Write, tmp_path: object) -> None:
    fifo = f"{tmp_path}/fifo"
    os.mkfifo(fifo)
    env = {**os.environ, "PYTHONWARNINGS": ""}  # Python warns of a file that the signal left half opened
    child = subprocess.Popen(
        [*COMMAND, "replay", fifo], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell starts us with it ignored
    )  # fmt: skip
    with child, open(fifo, "wb", buffering=0) as writer:
        writer.write(b"\n" * 100_000)  # more than a pipe holds: when this returns the child is reading
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=30)
    assert (child.returncode, said) == (130, b"")


def test_a_pipe_is_read_like_a_file(write: Write) -> None:
    done = subprocess.run(
        [*COMMAND, "replay", "/dev/stdin", "--json"],
        input=json.dumps(RUN), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert json.loads(done.stdout)["run_id"] == "stdin:1"


def test_a_terminal_without_unicode_gets_escapes(write: Write) -> None:
    done = run("replay", write("é.jsonl", RUN), PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert done.returncode == 0
    assert "\\x" in done.stdout or "\\u" in done.stdout


IMPORTED = """
import json, sys
from reasonblocks_workbench.cli import main
for argv in json.loads(sys.argv[1]):
    main(argv)
    for name in json.loads(sys.argv[2]):
        if name in sys.modules:
            print(name, *argv, file=sys.stderr)
"""


def imported(names: list[str], *commands: Sequence[str]) -> list[str]:
    """Return which of these modules were imported after each of the commands, which one process runs one by one."""
    program = [sys.executable, "-c", IMPORTED, json.dumps(commands), json.dumps(names)]
    return subprocess.run(program, capture_output=True, text=True, check=True, timeout=60).stderr.splitlines()


VIEWS: tuple[list[str], ...] = ([], ["--run", "a.jsonl:1"], ["--only-injected"], ["--diff", "a.toml", "a.toml"])


def test_json_and_output_into_a_pipe_never_import_rich(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    write("a.toml")
    runs = write("a.jsonl", RUN)
    commands = [["replay", runs, *json, *view] for json in (["--json"], []) for view in VIEWS]
    assert imported(["rich"], *commands) == []


def test_help_is_quick_because_it_imports_no_client_and_no_pydantic() -> None:
    assert imported(["reasonblocks.client", "pydantic", "rich"], ["--help"]) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
@pytest.mark.parametrize("argv", [["--json"], []])
def test_a_full_disk_is_said_in_one_line(write: Write, argv: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "replay", write("a.jsonl", RUN), *argv],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_no_framework_is_imported(write: Write) -> None:
    names = ["langchain", "langchain_core", "openai", "httpx", "qdrant_client"]
    assert imported(names, ["replay", write("a.jsonl", RUN), "--json"]) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_a_bar_goes_to_stderr_and_the_summary_to_stdout(write: Write) -> None:
    import pty

    path = write("a.jsonl", *[RUN] * 300)
    master, slave = pty.openpty()
    with subprocess.Popen([*COMMAND, "replay", path], stdout=subprocess.PIPE, stderr=slave) as child:
        os.close(slave)
        assert child.stdout
        said = _until_closed(master)
        out = child.stdout.read()
    assert b"%" in said
    assert said.endswith(b"\x1b[K")
    assert b"300, 2,700 steps" in out


def _until_closed(master: int) -> bytes:
    chunks = []
    try:
        while chunk := os.read(master, 65_536):
            chunks.append(chunk)
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(master)
    return b"".join(chunks)
