"""Decides what a call does, by role, name, argument or command: change, check, run, read, list, search or ask."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from ..types import JSON, ToolCall
from ..util.text import clip

FOREIGN = ("web", "mail", "chat")
"""The roles of tools that return other people's text: no text to the agent may quote it."""
NAME_HEAD = 200
"""Characters of a tool's name that are read."""
COMMAND_HEAD = 4_000
"""Characters of a command that are read."""

CHANGE, CHECK, RUN, READ, LIST, SEARCH, ASK, FINISH, NOTE = (
    "change", "check", "run", "read", "list", "search", "ask", "finish", "note",
)  # fmt: skip
_SAME_ROLE = {"edit": CHANGE, "test": CHECK}
LOOKS = frozenset((READ, LIST, SEARCH))

_VERBS: Mapping[str, str] = {
    verb: role
    for role, verbs in {
        NOTE: "think thinking todo todos todowrite plan",
        CHANGE: "edit write replace insert patch overwrite apply create append rename update delete modify save send"
        " add remove move set put post book cancel return refund pay transfer buy purchase reserve upload install"
        " uninstall restore copy commit push merge publish reply forward invite assign grant revoke enable disable"
        " deploy register subscribe unsubscribe clear reset exchange submit drop rollback upsert alter sed git",
        CHECK: "test tests pytest lint verify validate check checks typecheck compile build",
        READ: "read view get open cat show fetch describe load inspect retrieve display print head tail screenshot"
        " snapshot",
        LIST: "list ls tree dir",
        SEARCH: "search find grep query glob lookup browse locate",
        ASK: "wait poll sleep",
        FINISH: "finish done complete answer final",
    }.items()
    for verb in verbs.split()
}
"""The role of a word in a tool's name; the first such word decides."""
_PROBES = frozenset("check checks verify validate".split())
"""Verbs that check code only beside words about code."""
_OF_CODE = _PROBES | frozenset(
    "run all the a my and code syntax type types typing lint linter style format build compile test tests unit suite"
    " project file files patch changes change work solution result results answer ci tool call fn".split()
)
_SHELLS = frozenset("bash shell sh terminal execute exec command cmd console powershell pwsh zsh".split())
_REPLS = frozenset("python ipython jupyter repl notebook cell interpreter node javascript js code".split())
_ACTS_IN = ("command", "action", "operation", "op", "method", "subcommand", "action_name", "mode", "type")
"""Arguments whose one word says what a tool with many functions does."""
_COMMAND_KEYS = ("command", "cmd", "input", "code", "query", "script", "sql", "statement", "chars")
_HANDLES = re.compile(
    r"(?:^|_)(?:(?:session|process|shell|bash|job|task|terminal|run|command|build|deployment|operation|execution|exec|cell)_?id"
    r"|pid|session|job|process)$",
    re.IGNORECASE,
)
_CONTENT = ("chars", "input", "text", "keys", "data", "stdin")
"""Arguments that are typed into something that runs: without one, the call asks."""
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_PROGRAMS: Mapping[str, str] = {
    program: role
    for role, programs in {
        CHANGE: "mv cp rm rmdir mkdir touch ln chmod chown chgrp tee dd install patch truncate unzip tar gunzip gzip"
        " zip rsync scp useradd usermod userdel passwd crontab mount"
        " umount iptables ufw sysctl apply_patch wget shred gpg",
        CHECK: "pytest py.test nosetests nose2 tox nox jest vitest mocha ava rspec phpunit ctest mypy pyright pyre"
        " flake8 eslint pylint tsc shellcheck hadolint markdownlint rubocop golangci-lint black isort prettier"
        " stylelint make cmake ninja mvn mvnw gradle gradlew ant bazel gcc g++ cc clang clang++ javac rustc ghc coqc"
        " runtests run_tests ansible-lint yamllint configure",
        RUN: "python ipython node ruby perl php rscript julia java bash sh zsh ts-node tsx uvicorn gunicorn flask"
        " streamlit sqlite3 psql mysql",
        ASK: "sleep wait ps pgrep jobs top htop squeue sacct qstat nvidia-smi",
        SEARCH: "grep egrep fgrep zgrep rg ag ack find fd locate which whereis select-string",
        LIST: "ls dir tree du df lsof get-childitem",
        READ: "cat head tail less more nl wc awk gawk cut sort uniq diff cmp stat file xxd od hexdump strings pwd"
        " printenv whoami id uname date hostname jq yq echo printf type get-content cd sed curl history man strace"
        " ltrace objdump readelf nm gdb openssl base64 md5sum sha256sum",
    }.items()
    for program in programs.split()
}
"""The role of a program that a shell starts."""
_INSTALLS = (
    "install i add uninstall remove rm update upgrade sync ci get init create purge link set mod cache autoremove"
)
_SUBCOMMANDS: Mapping[str, Mapping[str, str]] = {
    program: {sub: role for role, subs in roles.items() for sub in subs.split()}
    for programs, roles in {
        "git": {
            CHANGE: "add commit checkout switch reset restore stash apply am cherry-pick merge rebase pull push rm mv"
            " clean clone init revert config submodule fetch",
            READ: "diff log show status blame rev-parse describe ls-files shortlog reflog",
            LIST: "branch tag remote ls-tree",
            SEARCH: "grep bisect",
        },
        "pip pip3 uv pipx conda mamba poetry pdm gem brew dnf yum apk snap apt apt-get aptitude dpkg composer opam"
        " pacman": {
            CHANGE: _INSTALLS + " -s -sy -syu -i",
            READ: "show list freeze search policy view info check outdated index",
            RUN: "run",
        },
        "npm pnpm yarn bun npx bunx": {
            CHANGE: _INSTALLS,
            CHECK: "test t check lint build typecheck type-check compile tsc verify jest vitest mocha eslint mypy",
            READ: "ls list view outdated why info",
            RUN: "start run exec dlx run-script",
        },
        "go cargo dotnet swift deno zig stack cabal lein sbt mix flutter dart rake nx turbo": {
            CHECK: "test vet build check clippy lint fmt analyze nextest bench",
            CHANGE: "install add get mod init new remove update",
            RUN: "run",
        },
        "docker podman": {
            CHANGE: "run rm rmi stop start restart up down create exec cp kill pull push tag build commit compose",
            ASK: "ps logs inspect stats",
            LIST: "images",
        },
        "kubectl oc": {
            CHANGE: "apply create delete patch scale edit set replace label annotate expose run",
            ASK: "get describe wait logs top rollout",
        },
        "helm": {CHANGE: "install upgrade uninstall rollback", LIST: "list ls", CHECK: "lint template"},
        "terraform tofu": {CHANGE: "apply destroy import", CHECK: "validate plan fmt", READ: "show output"},
        "systemctl service": {CHANGE: "start stop restart reload enable disable", ASK: "status is-active"},
        "gh": {ASK: "run pr workflow checks", READ: "issue api repo"},
        "ruff": {CHECK: "check format"},
        "nginx": {CHECK: "-t"},
    }.items()
    for program in programs.split()
}
"""The roles of the words after a program that has many functions."""
_MODULES = re.compile(
    r"(?:pytest|unittest|nose\d?|tox|nox|mypy|pyright|flake8|pylint|ruff|black|isort|py_compile|compileall|doctest"
    r"|coverage|build)$"
)
_TEST_FILE = re.compile(
    r"(?:^|/)(?:runtests?|run_tests?|test|tests|check|verify|validate|reproduce|repro|build|configure|gradlew|mvnw)\w*(?:\.\w+)?$|(?:_tests?|\.test"
    r"|\.spec)\.\w+$"
)
_SCRIPT = re.compile(r"/|\.(?:sh|py|rb|pl|js|mjs|ts)$")
"""A program that is a file of the workspace: by its folder or its ending."""
_PREFIXES = frozenset("sudo env time nohup xargs exec command then do else ! if while stdbuf nice".split())
_DOES = ("-exec", "-execdir", "-ok")
_SPLITS = re.compile(r"&&|\|\||[;|&\n(){}]")
_SENDS = re.compile(
    r"-X\s*(?:POST|PUT|PATCH|DELETE)|--request[ =](?:POST|PUT|PATCH|DELETE)|\s(?:-d|-F|-o|-O|-T)\s|--data|--form"
    r"|--output|--upload"
)
_MAGIC = re.compile(r"^(?:!|%{1,2})(?=\w|\.{0,2}/)", re.MULTILINE)
"""The mark at the start of a notebook's line that is no code of its language."""
MAX_PARTS = 24
"""Parts of a command that are read."""
_WRITES_FILE = re.compile(r"(?<![\d&=<-])>>?\s*(?!/dev/|&)[\w./~\"'$-]|(?<![&=<-])1>\s*(?!/dev/|&)[\w./~\"'$-]")
_WRITES_BY_CODE = re.compile(
    r"\bopen\([^)]{0,200},\s*(?:mode=)?['\"][wax]|\.write(?:_text|_bytes|lines)?\(|\.to_(?:csv|json|parquet|excel"
    r"|pickle)\(|\.save(?:fig|_pretrained)?\(|\bos\.(?:remove|rename|makedirs|mkdir|unlink|replace)\(|\bshutil\."
    r"|\bwriteFile(?:Sync)?\(|\.dump\(|\.extractall\("
)
_ASSIGNS = re.compile(
    r"^[ \t]*(?:(?:const|let|var)[ \t]+)?[\w\[('\"][\w.\[\]'\", ()]{0,79}?[ \t]*(?:[-+*/%|&^]|//|\*\*)?=(?!=)"
    r"|^[ \t]*(?:def|class|import|from|function)[ \t]",
    re.MULTILINE,
)
_SQL_READS = re.compile(
    r"(?:--[^\n]*\n\s*)*\(?\s*(?:SELECT|SHOW|DESCRIBE|DESC|EXPLAIN|WITH|PRAGMA|\\d|TABLE|VALUES)\b", re.IGNORECASE
)
_SQL_CHANGES = re.compile(
    r"(?:^|;|\bAS\s*\()\s*(?:INSERT\s+INTO|INSERT\s+OR|UPDATE\s+\S+\s+SET|DELETE\s+FROM|MERGE\s+INTO|REPLACE\s+INTO"
    r"|UPSERT|CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP\w*\s+|UNIQUE\s+)?"
    r"(?:TABLE|INDEX|VIEW|FUNCTION|TRIGGER|SCHEMA|DATABASE|TYPE|EXTENSION|POLICY|ROLE|USER|SEQUENCE|PROCEDURE"
    r"|MATERIALIZED)|ALTER\s+|DROP\s+|TRUNCATE\s+|GRANT\s+|REVOKE\s+|VACUUM|COMMENT\s+ON"
    r"|COPY\s+\S+\s+FROM|SET\s+|BEGIN|COMMIT|ROLLBACK)|['\"]\s*(?:INSERT\s+INTO|UPDATE\s+\S+\s+SET|DELETE\s+FROM"
    r"|CREATE\s+TABLE|ALTER\s+TABLE|DROP\s+TABLE)\b",
    re.IGNORECASE,
)
_SUBMITS = re.compile(r"\becho\s+['\"]?COMPLETE_TASK_AND_SUBMIT")
"""The command with which agents of the kind of mini-SWE-agent hand in their work."""
_PATCH = re.compile(r"\*\*\* (?:Begin Patch|Update File|Add File|Delete File)")
_QUOTED = re.compile(r"'[^'\n]*'|\"(?:[^\"\\\n]|\\.)*\"")
_UNTIL = re.compile(r"<<-?[ ]*(['\"]?)(\w+)\1")
_STASHES = re.compile(r"\bgit\s+stash\b(?!\s+(?:list|show)\b)")
_CLONES = re.compile(r"\bgit\s+clone\b")
_CODE = re.compile(
    r"(\b(?:python[\d.]*|node|perl|ruby)[^\n;|&\"']{0,200}? -[A-Za-z]*[ce])\s+(\"(?:[^\"\\]|\\.)*\"|'[^']*')", re.DOTALL
)
"""A program with its code as an argument."""
_CD = re.compile(r"\A\s*cd\s+[^\n;&|]+(?:&&|;|\n)")
_SEVERAL = re.compile(r"&&|;|\n|\|\|")
_INTERPRETER = re.compile(r"\b(?:python[\d.]*|node|ruby|perl|bash|sh|psql|sqlite3|mysql)\b[^|;&\n]*$")


class Kind(NamedTuple):
    """The `roles` of a call, and its `command`; `shell` is True if a shell or an interpreter runs that."""

    roles: frozenset[str]
    shell: bool = False
    command: str = ""

    @property
    def changes(self) -> bool:
        return CHANGE in self.roles

    @property
    def checks(self) -> bool:
        return CHECK in self.roles

    @property
    def looks(self) -> bool:
        """True for a call that only reads, lists or searches."""
        return bool(self.roles) and self.roles <= LOOKS

    @property
    def searches(self) -> bool:
        return SEARCH in self.roles

    @property
    def asks(self) -> bool:
        return ASK in self.roles

    @property
    def is_single(self) -> bool:
        """True for one call, or a command of one part: if it fails, it has done nothing."""
        lines = _without_documents(self.command)[0].strip()[:COMMAND_HEAD]
        return not self.shell or _SEVERAL.search(_QUOTED.sub('""', _CD.sub("", lines))) is None


def kind_of(call: ToolCall, given: Mapping[str, str]) -> Kind:
    """Return what a call does. A role that the caller gave to the tool goes before everything else."""
    command = command_of(call)
    own = given.get(call.name)
    if own and own not in FOREIGN:
        return Kind(frozenset((_SAME_ROLE.get(own, own),)), command=command)
    return _kind(call, command)


def _kind(call: ToolCall, command: str) -> Kind:
    name = call.name[:NAME_HEAD]
    parts = parts_of(name)
    if "COMPLETE_TASK" in command and _SUBMITS.search(command):
        return Kind(frozenset((FINISH,)), command=command)
    if _asks_by_form(call.arguments):
        return Kind(frozenset((ASK,)), command=command)
    if command and is_shell(name, command):
        roles = _of_command(command[:COMMAND_HEAD].strip())
        if roles or not _SHELLS.isdisjoint(parts) or not (named := role_by_name(name)):
            return Kind(roles, True, command)
        return Kind(frozenset((named,)), command=command)
    if command and not _REPLS.isdisjoint(parts) and role_by_name(name) in ("", CHECK):
        head = command[:COMMAND_HEAD]
        changes = _ASSIGNS.search(head) or _WRITES_BY_CODE.search(head)
        return Kind(frozenset((RUN, CHANGE) if changes else (RUN,)), True, command)
    role = role_by_name(name)
    act = _act_in(call.arguments)
    if act and role not in (NOTE, ASK):
        role = role_by_name(act) or role
    if (
        role in ("", SEARCH, READ)
        and command
        and (_SQL_CHANGES.search(command[:COMMAND_HEAD]) or _PATCH.search(command[:COMMAND_HEAD]))
    ):
        role = CHANGE
    return Kind(frozenset((role,)) if role else frozenset(), command=command)


def _asks_by_form(given: JSON) -> bool:
    """Return True for a call with a handle of something that runs, and nothing that is typed into it."""
    if not isinstance(given, Mapping) or not given:
        return False
    handles = [name for name in given if _HANDLES.search(str(name))]
    if not handles:
        return False
    typed = [name for name in given if str(name).lower() in _CONTENT]
    return all(given[name] in ("", None) for name in typed) and (bool(typed) or len(given) == len(handles))


def _act_in(given: JSON) -> str:
    if isinstance(given, Mapping):
        for name in _ACTS_IN:
            value = given.get(name)
            if isinstance(value, str) and value and len(value) <= 40 and " " not in value:
                return value
    return ""


def command_of(call: ToolCall) -> str:
    """Return a call's command, code or query, without the "!" and "%" of a notebook's lines; "" for none."""
    given = call.arguments
    if isinstance(given, Mapping):
        given = next((given[key] for key in _COMMAND_KEYS if isinstance(given.get(key), (str, list))), "")
        if isinstance(given, list):
            given = " ".join(map(str, given[-1:] if given[:1] in (["bash"], ["sh"], ["/bin/bash"]) else given))
    if not isinstance(given, str):
        return ""
    given = clip(given)
    return _MAGIC.sub("", given) if given[:1] in ("!", "%") or "\n!" in given else given


@lru_cache(maxsize=16)  # a step asks several times for its own commands
def _of_command(command: str) -> frozenset[str]:
    """Return the roles of a shell's command: several if it does several things."""
    if _SQL_READS.match(command) or (
        _SQL_CHANGES.search(command) and "\n" not in command[:20] and command.lstrip()[:1].isupper()
    ):
        return frozenset((CHANGE,)) if _SQL_CHANGES.search(command) else frozenset((READ,))
    lines, script = _without_documents(command)
    bare = _QUOTED.sub('""', lines)
    roles = {role for part in _SPLITS.split(bare)[:MAX_PARTS] if (role := _of_part(part.split()))}
    if _WRITES_FILE.search(bare) or ("*** " in command and _PATCH.search(command)):
        roles.add(CHANGE)
    if RUN in roles and (_WRITES_BY_CODE.search(script or command) or _SQL_CHANGES.search(command)):
        roles.add(CHANGE)
    if CHECK in roles:
        roles.discard(RUN)
    if CHECK in roles and (_STASHES.search(bare) or _CLONES.search(bare)):  # of other files than those of the work
        roles.discard(CHECK)
    if not LOOKS.isdisjoint(roles) and not roles.isdisjoint((CHANGE, CHECK, RUN)):
        roles -= LOOKS
    return frozenset(roles)


def _of_part(words: list[str]) -> str:
    """Return the role of one part of a command, by its program and the words after it."""
    at = 0
    while at < len(words) and (
        words[at].lower() in _PREFIXES
        or ("=" in words[at][1:] and words[at][:1].isalpha())
        or words[at] in ("-n", "-S", "-u")
        or (words[at][:1] == "-" and "xargs" in words[:at])
    ):
        at += 1
    if at < len(words) and words[at] == "timeout":
        at += 2
    if at >= len(words):
        return ""
    path, rest = words[at], words[at + 1 : at + 8]
    name = path.rsplit("/", 1)[-1].lower()
    if name.startswith("python") or name in ("pypy", "pypy3") or (name.startswith("$") and rest[:1] == ["-m"]):
        return _of_python(rest)
    if name == "git" and rest[:1] == ["stash"] and rest[1:2] in (["list"], ["show"]):
        return READ
    if known := _SUBCOMMANDS.get(name):
        return _of_subcommand(known, rest)
    if name in ("sed", "perl") and any(
        word.startswith("-") and not word.startswith("--") and "i" in word.lower() for word in rest[:3]
    ):
        return CHANGE
    if name == "find" and "-delete" in words:
        return CHANGE
    if name == "find" and (does := next((at for at, word in enumerate(words) if word in _DOES), 0)):
        return _of_part(words[does + 1 :]) or SEARCH
    if name == "curl" and _SENDS.search(f" {' '.join(words[at + 1 :])} "):
        return CHANGE
    if name in ("node", "bash", "sh") and rest[:1] in (["--check"], ["--test"], ["-n"]):
        return CHECK
    if name in _PROGRAMS:
        return _PROGRAMS[name]
    if _SCRIPT.search(path):
        return CHECK if _TEST_FILE.search(path) else RUN
    return ""


def _of_python(rest: list[str]) -> str:
    if rest[:1] == ["-m"] and len(rest) > 1:
        if rest[1] == "pip":
            return _of_subcommand(_SUBCOMMANDS["pip"], rest[2:])
        return CHECK if _MODULES.match(rest[1]) else RUN
    if rest and (
        _TEST_FILE.search(rest[0])
        or (rest[0].endswith(("manage.py", "setup.py")) and rest[1:2] in (["test"], ["build"]))
    ):
        return CHECK
    return RUN


def _of_subcommand(known: Mapping[str, str], rest: list[str]) -> str:
    """Return the role of the first word that has one; that of a later word if the first one only starts another."""
    found = [known[word.lower()] for word in rest if word.lower() in known]
    if found[:1] == [RUN]:
        later = [role for role in found[1:] if role != CHANGE] or [_of_part(rest[1:])]
        return later[0] or RUN
    return found[0] if found else ""


def _without_documents(command: str) -> tuple[str, str]:
    """Return the lines of a script without its here-documents, and the code in it that an interpreter runs."""
    run = [code[2] for code in _CODE.finditer(command)]
    command = _CODE.sub(r'\1 ""', command)
    if "<<" not in command:
        return command, "\n".join(run)
    lines, end, runs = list[str](), None, False
    for line in command.split("\n"):
        if end is not None:
            if line.strip(" \t") == end:
                end = None
            elif runs:
                run.append(line)
            continue
        lines.append(line)
        if until := _UNTIL.search(line):
            end, runs = until[2], _INTERPRETER.search(line, 0, until.start()) is not None
    return "\n".join(lines), "\n".join(run)


def code_in(command: str) -> str:
    """Return the code that an interpreter runs from the command itself."""
    return _without_documents(command)[1]


def run_in(command: str) -> str:
    """Return what a command runs, without what it does before and with the output: its last part that runs something.

    So `sed -i s/a/b/ f.py && pytest -q | tail -3` runs `pytest -q`. A document that an interpreter runs belongs to it.
    """
    lines, script = _without_documents(command)
    parts = [" ".join(part.split()) for part in _SPLITS.split(lines)[:MAX_PARTS]]
    ran = [part for part in parts if _of_part(part.split()) in (CHECK, RUN)]
    return f"{(ran or [lines])[-1]}\n{script}"


def is_shell(name: str, command: str = "") -> bool:
    """Return True if the tool runs commands, so that its command has the roles.

    Some agents name the call after the program that a line of a shell starts: the tool of "python train.py" is python.
    """
    parts = parts_of(name[:NAME_HEAD])
    if not _SHELLS.isdisjoint(parts):
        return True
    return bool(name) and command.startswith(name) and command[len(name) :][:1] in ("", " ")


def runs_code(name: str) -> bool:
    """Return True for the name of an interpreter, such as python3: some agents name the call after its program."""
    return name.startswith("python") or _PROGRAMS.get(name) == RUN


@lru_cache(maxsize=1024)
def role_by_name(name: str) -> str:
    """Return the role of the first word of a name that has one; of a tool of a server, of its own name."""
    parts = parts_of(name)
    if any(_VERBS.get(part) == NOTE for part in parts):
        return NOTE
    if "output" in parts and not {"read", "get", "bash", "task"}.isdisjoint(parts):
        return ASK
    if "status" in parts and parts[-1:] == ("status",) and _VERBS.get(parts[0]) != CHANGE:
        return ASK
    found = [_VERBS[part] for part in parts if part in _VERBS]
    if not found:
        return ""
    if found[0] == CHANGE and SEARCH in found and parts[0] in ("post", "api"):
        return SEARCH
    if parts == ("submit",):
        return FINISH
    if found[0] == CHECK and not _PROBES.isdisjoint(parts) and not _OF_CODE.issuperset(parts):
        return READ  # it looks something up, as check_opening_hours does
    return found[0]


@lru_cache(maxsize=1024)
def parts_of(name: str) -> tuple[str, ...]:
    return tuple([part.lower() for part in _NAME_PART.findall(name)])
