"""Decides what a call does: it changes, checks, runs, reads, lists, searches or asks; by role, name, argument, command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from ..types import JSON, ToolCall
from ..util.text import clip

FOREIGN = ("web", "mail", "chat")
"""The roles of tools that return other people's text: no text to the agent may quote it."""
ROLES = ("change", "check", "edit", "test", "read", "list", "search", "ask", "finish", *FOREIGN)
"""The roles that a caller may give to a tool; "edit" is a change of a file, "test" a check."""
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
        NOTE: "think todo todos todowrite plan",
        CHANGE: "edit write replace insert patch overwrite apply create append rename update delete modify save send add remove"
        " move set put post book cancel return refund pay transfer buy purchase reserve upload install uninstall restore copy"
        " commit push merge publish reply forward invite assign grant revoke enable disable deploy register subscribe"
        " unsubscribe clear reset exchange submit drop rollback upsert alter sed git",
        CHECK: "test tests pytest lint verify validate check checks typecheck compile build",
        READ: "read view get open cat show fetch describe load inspect retrieve display print head tail screenshot snapshot",
        LIST: "list ls tree dir",
        SEARCH: "search find grep query glob lookup browse locate",
        ASK: "wait poll sleep",
        FINISH: "finish done complete answer final",
    }.items()
    for verb in verbs.split()
}
"""The role of a word in a tool's name; the first such word decides."""
_SHELLS = frozenset("bash shell sh terminal execute exec command cmd console powershell pwsh zsh".split())
_REPLS = frozenset("python ipython jupyter repl notebook cell interpreter node javascript js code".split())
_ACTS_IN = ("command", "action", "operation", "op", "method", "subcommand", "action_name", "mode", "type")
"""Arguments whose one word says what a tool with many functions does."""
_COMMAND_KEYS = ("command", "cmd", "input", "code", "query", "script", "sql", "statement", "chars")
_HANDLES = re.compile(
    r"(?:^|_)(?:session|process|pid|shell|bash|job|task|terminal|run|command|build|deployment|operation|execution|exec)(?:_?id)?$",
    re.IGNORECASE,
)
_CONTENT = ("chars", "input", "text", "keys", "data", "stdin")
"""Arguments that are typed into something that runs: without one, the call asks."""
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_START = r"(?:^|[;&|({\n]|\bthen\b|\bdo\b|\belse\b|\bsudo\b|\btime\b|\bxargs\b|\benv\b)\s*(?:[A-Za-z_]\w*=\S*\s+)*(?:sudo\s+(?:-\w+\s+)*)?(?:timeout\s+\S+\s+)?(?:\S*/)?"
_CHANGES = re.compile(
    _START + r"(?:(?:mv|cp|rm|rmdir|mkdir|touch|ln|chmod|chown|chgrp|tee|dd|install|patch|truncate|unzip|tar|gunzip|rsync|scp"
    r"|kill|pkill|killall|export|unset|alias|source|useradd|usermod|passwd|crontab|mount|iptables|ufw|swapoff|sysctl|apply_patch)\b"
    r"|sed\s+(?:-\w+\s+)*-\w*i|perl\s+(?:-\w+\s+)*-\w*i"
    r"|git\s+(?:-C\s+\S+\s+|-c\s+\S+\s+)*(?:add|commit|checkout|switch|reset|restore|stash|apply|am|cherry-pick|merge|rebase|pull|push|rm|mv|clean"
    r"|clone|init|revert|tag|config|submodule|fetch)\b(?!\s+(?:list|show|--list|-l)\b)"
    r"|(?:pip3?|uv|pipx|conda|mamba|poetry|pdm|gem|brew|dnf|yum|apk|pacman|snap|apt|apt-get|aptitude|dpkg|npm|pnpm|yarn|bun|cargo|go|composer|opam"
    r"|python[\d.]*\s+-m\s+pip)\s+(?:pip\s+)?(?:-\S+\s+)*(?:install|i|add|uninstall|remove|update|upgrade|sync|ci|get|init|create|purge|-S\w*|-i|link|set|mod|cache)\b"
    r"|docker\s+(?:compose\s+|container\s+|image\s+)?(?:run|rm|rmi|stop|start|restart|up|down|create|exec|cp|kill|pull|push|tag)\b"
    r"|kubectl\s+(?:-\S+\s+\S+\s+)*(?:apply|create|delete|patch|scale|edit|set|replace|label|annotate|expose|run|rollout\s+(?:restart|undo))\b"
    r"|(?:systemctl|service)\s+(?:\S+\s+)?(?:start|stop|restart|reload|enable|disable)\b|helm\s+(?:install|upgrade|uninstall|rollback)\b"
    r"|terraform\s+(?:apply|destroy|import)\b|(?:curl|http)\s[^\n|;]*(?:-X\s*(?:POST|PUT|PATCH|DELETE)|--request\s+(?:POST|PUT|PATCH|DELETE)|\s-d\s|--data|\s-F\s|\s-o\s|\s-O\b|--output)"
    r"|wget\b(?![^\n|;]*(?:-O-|-qO-|-O\s+-|--spider)))"
)
_WRITES_FILE = re.compile(r"(?<![\d&=<-])>>?\s*(?!/dev/|&)[\w./~\"'$-]|(?<![&=<-])1>\s*(?!/dev/|&)[\w./~\"'$-]")
_WRITES_BY_CODE = re.compile(
    r"\bopen\([^)]{0,200},\s*(?:mode=)?['\"][wax]|\.write(?:_text|_bytes|lines)?\(|\.to_(?:csv|json|parquet|excel|pickle)\(|\.save(?:fig|_pretrained)?\("
    r"|\bos\.(?:remove|rename|makedirs|mkdir|unlink|replace)\(|\bshutil\.|\bwriteFile(?:Sync)?\(|\.dump\(|\.extractall\("
)
_ASSIGNS = re.compile(r"^[ \t]*(?:(?:const|let|var)\s+)?[\w.\[\]'\", ()]{1,80}?\s*(?:[-+*/%|&^]|//|\*\*)?=(?!=)|^\s*(?:def|class|import|from|function)\s", re.M)
_CHECKS = re.compile(
    _START + r"(?:(?:pytest|py\.test|nosetests|nose2|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest|mypy|pyright|pyre|flake8|eslint|pylint"
    r"|tsc|shellcheck|hadolint|markdownlint|rubocop|golangci-lint|clippy|black|isort|prettier|stylelint|make|cmake|ninja|mvn|mvnw|gradle|gradlew"
    r"|ant|bazel|gcc|g\+\+|cc|clang|clang\+\+|javac|rustc|ghc|runtests\S*|run_tests\S*|ansible-lint|yamllint)\b"
    r"|ruff\s+(?:check|format\s+--check)|(?:npx|bunx|pnpm\s+(?:exec|dlx)|yarn\s+(?:exec|dlx)|uv\s+run|poetry\s+run|pipenv\s+run|bundle\s+exec|python[\d.]*\s+-m)\s+(?:-\S+\s+)*"
    r"(?:pytest|unittest|nose|tox|nox|jest|vitest|mocha|ava|rspec|mypy|pyright|flake8|eslint|pylint|tsc|ruff|prettier|black|isort|py_compile|compileall|doctest|coverage|build)\b"
    r"|(?:npm|yarn|pnpm|bun)\s+(?:run\s+|run-script\s+)?(?:-\S+\s+)*(?:test|check|lint|build|typecheck|type-check|compile|tsc|verify|ci:\S+|t)\b"
    r"|(?:go|cargo|dotnet|swift|deno|zig|stack|cabal|lein|sbt|mix|flutter|dart|rake|nx|turbo)\s+(?:\S+\s+)?(?:test|vet|build|check|clippy|lint|fmt|analyze|nextest)\b"
    r"|python[\d.]*\s+\S*(?:manage\.py\s+test|runtests?\S*|setup\.py\s+(?:test|build)|test\S*\.py|\S+_tests?\.py)|node\s+--(?:check|test)|bash\s+-n|terraform\s+(?:validate|plan)"
    r"|nginx\s+-t|\./(?:test|run_test|runtest|check|build|gradlew|mvnw|configure)\S*|git\s+diff\s+--check)"
)
_RUNS = re.compile(
    _START + r"(?:python[\d.]*|ipython|node|deno|bun|ruby|perl|php|Rscript|julia|java|bash|sh|zsh|npx|ts-node|tsx|\./\S+|go\s+run|cargo\s+run|dotnet\s+run"
    r"|npm\s+(?:start|run)|yarn\s+(?:start|run)|uvicorn|gunicorn|flask|streamlit|sqlite3|psql|mysql|uv\s+run|poetry\s+run|[\w./-]+\.(?:sh|py|rb|pl))(?=\s|$)"
)
_ASKS = re.compile(
    _START + r"(?:sleep\s+[\d.]+|wait\b|ps\b|pgrep\b|jobs\b|top\b|htop\b|squeue\b|sacct\b|qstat\b|nvidia-smi\b|docker\s+(?:ps|logs|inspect|stats)\b|docker\s+compose\s+(?:ps|logs)\b"
    r"|kubectl\s+(?:-\S+\s+\S+\s+)*(?:get|describe|wait|logs|top|rollout\s+status)\b|systemctl\s+(?:status|is-active)\b|gh\s+(?:run|pr|workflow)\s+(?:view|watch|checks|list)\b"
    r"|aws\s+\S+\s+(?:describe|wait|get)\S*|gcloud\s+.*\b(?:describe|list)\b|tail\s+-f)"
)
_SEARCHES = re.compile(_START + r"(?:grep|egrep|fgrep|rg|ag|ack|find|fd|locate|git\s+grep|which|whereis|type|Select-String)\b")
_LISTS = re.compile(_START + r"(?:ls|dir|tree|du|df|lsof|Get-ChildItem|git\s+(?:branch|tag|remote|stash\s+list))\b")
_READS = re.compile(
    _START + r"(?:cat(?!\s*(?:>|<<))|head|tail|less|more|nl|wc|sed\s+-n|awk|cut|sort|uniq|diff|stat|file|xxd|od|hexdump|strings|pwd|env|printenv|whoami|id|uname|date|hostname"
    r"|git\s+(?:diff|log|show|status|blame|rev-parse|describe|ls-files)|jq|yq|echo|printf|type|Get-Content|pip3?\s+(?:show|list|freeze)|npm\s+(?:ls|list|view|outdated)|cd)\b"
)
_SQL_READS = re.compile(r"\s*(?:--[^\n]*\n\s*)*\(?\s*(?:SELECT|SHOW|DESCRIBE|DESC|EXPLAIN|WITH|PRAGMA|\\d|TABLE|VALUES)\b", re.IGNORECASE)
_SQL_CHANGES = re.compile(
    r"(?:^|;|\bAS\s*\()\s*(?:INSERT\s+INTO|INSERT\s+OR|UPDATE\s+\S+\s+SET|DELETE\s+FROM|MERGE\s+INTO|REPLACE\s+INTO|UPSERT|CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP\w*\s+|UNIQUE\s+)?"
    r"(?:TABLE|INDEX|VIEW|FUNCTION|TRIGGER|SCHEMA|DATABASE|TYPE|EXTENSION|POLICY|ROLE|USER|SEQUENCE|PROCEDURE|MATERIALIZED)|ALTER\s+|DROP\s+|TRUNCATE\s+|GRANT\s+|REVOKE\s+|VACUUM|COMMENT\s+ON"
    r"|COPY\s+\S+\s+FROM|SET\s+|BEGIN|COMMIT|ROLLBACK)|['\"]\s*(?:INSERT\s+INTO|UPDATE\s+\S+\s+SET|DELETE\s+FROM|CREATE\s+TABLE|ALTER\s+TABLE|DROP\s+TABLE)\b",
    re.IGNORECASE,
)
_PATCH = re.compile(r"\*\*\* (?:Begin Patch|Update File|Add File|Delete File)")
_QUOTED = re.compile(r"'[^'\n]*'|\"(?:[^\"\\\n]|\\.)*\"")
_UNTIL = re.compile(r"<<-?[ ]*(['\"]?)(\w+)\1")
_SEVERAL = re.compile(r"&&|;|\n|\|\|")
_CD = re.compile(r"\A\s*cd\s+[^\n;&|]+(?:&&|;|\n)")
_INTERPRETER = re.compile(r"\b(?:python[\d.]*|node|ruby|perl|bash|sh|psql|sqlite3|mysql)\b[^|;&\n]*$")


class Kind(NamedTuple):
    """What a call does: its `roles`, and whether it runs a command in a `shell`."""

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
        return not self.shell or _SEVERAL.search(_QUOTED.sub('""', _CD.sub("", self.command))) is None


def kind_of(call: ToolCall, given: Mapping[str, str]) -> Kind:
    """Return what a call does. A role that the caller gave to the tool goes before everything else."""
    command = command_of(call)
    own = given.get(call.name)
    if own and own not in FOREIGN:
        return Kind(frozenset((_SAME_ROLE.get(own, own),)), command=command)
    return _kind(call, command)


def _kind(call: ToolCall, command: str) -> Kind:
    name = call.name[:NAME_HEAD]
    parts = _parts(name)
    if _asks_by_form(call.arguments):
        return Kind(frozenset((ASK,)), command=command)
    if command and is_shell(name, command):
        roles = _of_command(command[:COMMAND_HEAD])
        if roles or not _SHELLS.isdisjoint(parts) or not (named := _role_by_name(name)):
            return Kind(roles, True, command)
        return Kind(frozenset((named,)), command=command)
    if command and not _REPLS.isdisjoint(parts) and _role_by_name(name) in ("", RUN, CHECK):
        changes = _ASSIGNS.search(command) or _WRITES_BY_CODE.search(command)
        return Kind(frozenset((RUN, CHANGE) if changes else (RUN,)), True, command)
    role = _role_by_name(name)
    act = _act_in(call.arguments)
    if act and role not in (NOTE, ASK):
        role = _role_by_name(act) or role
    if role in ("", SEARCH, READ, RUN) and command and (_SQL_CHANGES.search(command[:COMMAND_HEAD]) or _PATCH.search(command[:COMMAND_HEAD])):
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
    """Return a call's command, code or query, without the "!" that starts it in a notebook; "" for none."""
    given = call.arguments
    if isinstance(given, Mapping):
        given = next((given[key] for key in _COMMAND_KEYS if isinstance(given.get(key), (str, list))), "")
        if isinstance(given, list):
            given = " ".join(map(str, given[-1:] if given[:1] in (["bash"], ["sh"], ["/bin/bash"]) else given))
    if not isinstance(given, str):
        return ""
    return clip(given) if given[:1] != "!" else clip(given)[1:].replace("\n!", "\n")


def _of_command(command: str) -> frozenset[str]:
    """Return the roles of a shell's command: several if it does several things."""
    if _SQL_READS.match(command) or (_SQL_CHANGES.search(command) and "\n" not in command[:20] and command.lstrip()[:1].isupper()):
        return frozenset((CHANGE,)) if _SQL_CHANGES.search(command) else frozenset((READ,))
    lines, script = _without_documents(command)
    bare = _QUOTED.sub('""', lines)
    roles = {role for role, pattern in _BY_COMMAND if pattern.search(bare)}
    if _WRITES_FILE.search(bare) or _PATCH.search(command):
        roles.add(CHANGE)
    if RUN in roles and (_WRITES_BY_CODE.search(script or command) or _SQL_CHANGES.search(command)):
        roles.add(CHANGE)
    if CHECK in roles:
        roles.discard(RUN)
    if not LOOKS.isdisjoint(roles) and not roles.isdisjoint((CHANGE, CHECK, RUN)):
        roles -= LOOKS
    return frozenset(roles)


_BY_COMMAND = (
    (CHANGE, _CHANGES), (CHECK, _CHECKS), (RUN, _RUNS), (ASK, _ASKS), (SEARCH, _SEARCHES), (LIST, _LISTS), (READ, _READS),
)  # fmt: skip


def _without_documents(command: str) -> tuple[str, str]:
    """Return the lines of a script without its here-documents, and the documents that an interpreter runs."""
    if "<<" not in command:
        return command, ""
    lines, run, end, runs = [], [], None, False
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


def is_shell(name: str, command: str = "") -> bool:
    """Return True if the tool runs commands, so that its command has the roles.

    Some agents name the call after the program that a line of a shell starts: the tool of "python train.py" is python.
    """
    parts = _parts(name[:NAME_HEAD])
    if not _SHELLS.isdisjoint(parts):
        return True
    return bool(name) and command.startswith(name) and command[len(name) :][:1] in ("", " ")


@lru_cache(maxsize=1024)
def _role_by_name(name: str) -> str:
    """Return the role of the first word of a name that has one; of a tool of a server, of its own name."""
    parts = _parts(name)
    if not {"todo", "todos", "think", "thinking", "plan"}.isdisjoint(parts):
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
    return found[0]


@lru_cache(maxsize=1024)
def _parts(name: str) -> tuple[str, ...]:
    return tuple([part.lower() for part in _NAME_PART.findall(name)])
