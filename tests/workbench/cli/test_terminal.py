"""Texts of others never reach the terminal as something that it obeys."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.types import Codebase, Finding
from tests.whole import in_whole
from tests.workbench.cli.conftest import Command

EVIL = "\x1b]0;pwned\x07\x1b[2J\x9b31m\x7f\u202e\u2066\u200b\u2028\nnew line\r[red]x[/red][link=http://e]y[/link]\\"
ID, RUN_ID = f"id{EVIL}", f"run{EVIL}"
LESSON = {
    "id": ID,
    "tier": "e2",
    "failure_type": f"loop{EVIL}",
    "org_id": "default",
    "fields": {
        "diagnosis": f"It fails {EVIL}",
        "intervention": f"Print {EVIL}",
        "anti_pattern": EVIL,
        f"x{EVIL}": EVIL,
    },
    "exemplars": [f"I look again {EVIL}"],
}
STEP = {
    "thought": f"I look {EVIL}", "action": f"ls{EVIL}", "action_input": f".{EVIL}", "observation": f"Error {EVIL}",
}  # fmt: skip
RUN = {"run_id": RUN_ID, "task": EVIL, "source": EVIL, "outcome": f"failure: {EVIL}", "steps": [STEP] * 9}
EVENTS = [
    {"event": "run_start", "timestamp": 1.0, "run_id": RUN_ID, "agent_name": EVIL, "task": EVIL},
    {"event": "step", "timestamp": 2.0, "run_id": RUN_ID, "step_index": 1, "thought": EVIL, "action": EVIL,
     "injection_sources": ["MonitorSteeringInjection", EVIL], "intervention_texts": [EVIL, EVIL],
     "monitors_fired": [EVIL], "metadata": {"fsm_state": EVIL, "error": EVIL, "withheld_sources": [EVIL],
                                            "withheld_texts": [EVIL]}},
    {"event": "run_finish", "timestamp": 3.0, "run_id": RUN_ID, "outcome": f"failure: {EVIL}"},
]  # fmt: skip
FINDING = Finding(
    content=f"It is {EVIL}", file_path=f"src{EVIL}", finding_type=EVIL, metadata={EVIL: EVIL}, finding_id=ID,
    created_at=EVIL,
)  # fmt: skip
_SGR = re.compile(r"\x1b\[[0-9;]*m")
ON_TERMINALS = ("search", "replay", "replay only")
"""Commands that are shown on a terminal with `WHOLE` only, because others show similar tables and texts."""
COMMANDS: dict[str, Sequence[str]] = {
    "import": ("patterns", "import", "PATTERNS"),
    "import bad": ("patterns", "import", "BROKEN"),
    "import none": ("patterns", "import", f"no{EVIL}"),
    "add": ("patterns", "add", "--id", f"b{EVIL}", "--tier", "e3", "--field", f"instruction=Do {EVIL}"),
    "add json": ("patterns", "add", "--id", f"b{EVIL}", "--tier", "e3", "--field", f"instruction={EVIL}.", "--json"),
    "add again": ("patterns", "add", "--id", ID, "--tier", "e3", "--field", "instruction=x"),
    "list": ("patterns", "list"),
    "list json": ("patterns", "list", "--json"),
    "show": ("patterns", "show", ID),
    "show json": ("patterns", "show", ID, "--json"),
    "show none": ("patterns", "show", f"none{EVIL}"),
    "search": ("patterns", "search", f"I look again {EVIL}", "--all"),
    "search none": ("patterns", "search", "nothing", "--failure-type", EVIL),
    "search json": ("patterns", "search", f"I look again {EVIL}", "--all", "--json"),
    "check": ("patterns", "check"),
    "check file": ("patterns", "check", "PATTERNS", "BROKEN"),
    "check json": ("patterns", "check", "PATTERNS", "BROKEN", "--json"),
    "export": ("patterns", "export"),
    "export toml": ("patterns", "export", "--toml"),
    "export out": ("patterns", "export", "--out", f"out{EVIL}"),
    "remove": ("patterns", "remove", ID),
    "restore": ("patterns", "restore", ID),
    "patterns calibrate": ("patterns", "calibrate", "RUNS", "--embedder", "hash", "--out", f"c{EVIL}"),
    "replay": ("replay", "RUNS"),
    "replay run": ("replay", "RUNS", "--run", RUN_ID),
    "replay full": ("replay", "RUNS", "--run", RUN_ID, "--full"),
    "replay only": ("replay", "RUNS", "--only-injected"),
    "replay only json": ("replay", "RUNS", "--only-injected", "--json"),
    "replay diff": ("replay", "RUNS", "--diff", "SETTINGS", "OTHERS"),
    "replay diff run": ("replay", "RUNS", "--diff", "SETTINGS", "OTHERS", "--run", RUN_ID, "--full"),
    "replay diff json": ("replay", "RUNS", "--diff", "SETTINGS", "OTHERS", "--json"),
    "replay diff bad": ("replay", "RUNS", "--diff", "RUNS", f"no{EVIL}"),
    "replay none": ("replay", "RUNS", "--run", f"none{EVIL}"),
    "replay json": ("replay", "RUNS", "--json"),
    "replay settings": ("replay", "RUNS", "--task-profile", EVIL),
    "watch": ("watch", "LOG", "--once"),
    "watch told": ("watch", "LOG", "--once", "--told", "--full"),
    "watch json": ("watch", "LOG", "--once", "--json"),
    "watch none": ("watch", f"none{EVIL}", "--once"),
    "watch bad": ("watch", "PATTERNS", "--once"),
    "learn": ("learn", "RUNS"),
    "learn json": ("learn", "RUNS", "--json"),
    "memory": ("memory", "list"),
    "memory json": ("memory", "list", "--json"),
    "memory list": ("memory", "list", "acme"),
    "memory list json": ("memory", "list", "acme", "--json"),
    "memory list path": ("memory", "list", "acme", "--path", EVIL),
    "memory list stale": ("memory", "list", "acme", "--stale", "--root", f"no{EVIL}"),
    "memory list none": ("memory", "list", f"none{EVIL}"),
    "memory search": ("memory", "search", "acme", f"It is {EVIL}", "--threshold", "0"),
    "memory search json": ("memory", "search", "acme", f"It is {EVIL}", "--threshold", "0", "--json"),
    "memory search none": ("memory", "search", "acme", EVIL, "--threshold", "1"),
    "memory forget": ("memory", "forget", "acme", "--id", ID, f"none{EVIL}"),
    "memory forget path": ("memory", "forget", "acme", "--path", EVIL),
    "memory forget json": ("memory", "forget", "acme", "--id", f"none{EVIL}", "--json"),
    "memory serve": ("memory", "serve", "acme", "--root", f"no{EVIL}"),
    "memory store": ("memory", "list", "acme", "--store", f"no{EVIL}"),
    "doctor": ("doctor",),
    "doctor json": ("doctor", "--json"),
    "usage": ("replay", "--limit", EVIL, "RUNS"),
    "command": (EVIL,),
}


def prepared(folder: Path, argv: Sequence[str]) -> list[str]:
    files = {name: f"{name.lower()}{EVIL}" for name in ("RUNS", "PATTERNS", "BROKEN", "SETTINGS", "OTHERS", "LOG")}
    names = {name: folder / file.replace("/", "_") for name, file in files.items()}
    run = json.dumps(RUN)
    names["RUNS"].write_text(f"{run}\n{run}\n{{\n", encoding="utf-8")
    names["LOG"].write_text("".join(f"{json.dumps(event)}\n" for event in EVENTS), encoding="utf-8")
    names["PATTERNS"].write_text(json.dumps(LESSON) + "\n", encoding="utf-8")
    broken = json.dumps({**LESSON, "tier": f"e9{EVIL}"}) + "\n" + json.dumps({**LESSON, EVIL: EVIL}) + "\n"
    names["BROKEN"].write_text(broken, encoding="utf-8")
    names["SETTINGS"].write_text("", encoding="utf-8")
    names["OTHERS"].write_text("[fsm_thresholds]\nslow_window = 1\n", encoding="utf-8")
    return [str(names.get(one, one)) for one in argv]


def called(folder: Path, argv: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    environment = {**os.environ, "REASONBLOCKS_HOME": str(folder), "REASONBLOCKS_EVIL" + EVIL[:4]: "", "TERM": "xterm"}
    environment.pop("REASONBLOCKS_STRICT", None)
    return [sys.executable, "-m", "reasonblocks", *prepared(folder, argv)], environment


def obeyed(text: str) -> list[str]:
    return [char for char in text if char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@pytest.fixture
def store(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder whose store holds the pattern, and in which the commands work."""
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert command(*prepared(tmp_path, COMMANDS["import"])).code == 0
    with closing(LocalFindings(tmp_path / "patterns.db")) as findings:
        for codebase in ("acme", f"acme{EVIL}"):
            findings.put(Codebase(org_id="default", codebase_id=codebase), [FINDING])
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_prints_what_a_terminal_obeys(store: Path, command: Command, name: str) -> None:
    done = command(*prepared(store, COMMANDS[name]))
    assert (obeyed(done.out), obeyed(done.err)) == ([], [])
    assert [line for line in f"{done.out}\n{done.err}".split("\n") if line.startswith("new line")] == []
    if name.endswith("json"):
        assert [line for line in done.out.splitlines() if not isinstance(json.loads(line), dict)] == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    "name",
    [
        "list",
        "replay run",
        "replay diff",
        "doctor",
        "memory list",
        *(pytest.param(one, marks=in_whole) for one in ON_TERMINALS),
    ],
)
def test_on_a_terminal_only_colours_are_sent(store: Path, name: str) -> None:
    pytest.importorskip("rich")
    import pty

    argv, environment = called(store, COMMANDS[name])
    outer, inner = pty.openpty()
    with subprocess.Popen(
        argv, env={**environment, "COLUMNS": "300"}, stdout=inner, stderr=subprocess.PIPE, cwd=store
    ) as child:
        os.close(inner)
        sent = b""
        try:
            while part := os.read(outer, 65_536):
                sent += part
        except OSError:  # Linux says so when the other end is closed
            pass
        assert child.stderr
        assert obeyed(child.stderr.read().decode()) == []
    os.close(outer)
    shown = sent.decode().replace("\r\n", "\n")
    assert obeyed(_SGR.sub("", shown)) == []
    assert name == "doctor" or "[red]" in shown or "…" in shown or "..." in shown


def test_what_is_exported_to_the_terminal_is_what_is_exported_to_a_file(store: Path, command: Command) -> None:
    from reasonblocks.util.files import loads

    for more, read in (([], json.loads), (["--toml"], lambda text: loads(text)["pattern"][0])):
        assert read(command("patterns", "export", *more).out)["fields"] == LESSON["fields"]
