"""Reads a result: unwraps it, and decides whether the call failed, still runs, or found nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..types import JSON, ToolResult
from ..util.text import EDGE
from .calls import Kind
from .message import message_line
from .sameness import own_values

WRAPPED = 2 * EDGE
"""Characters of the longest result that is read as JSON."""
DEEPEST = 4
"""Wrappers within each other that are opened."""
SHORT = 400
"""Characters of the longest result whose words are its status: a longer one is content."""
HEAD = 300
"""Characters at the start of a result in which an error is announced."""
TAIL = 1_500
"""Characters at the end of a result in which a runner reports its totals, and a traceback ends."""
AFTER_RAISED = 300
"""Characters of output after a traceback up to which it is what the call ended with."""

_TEXT_KEYS = (
    "text", "output", "stdout", "result", "results", "content", "data", "observation", "body", "value", "message",
)  # fmt: skip
"""Keys of a wrapper whose only text is the result, by precedence."""
_ERROR_KEYS = ("error", "errors", "exception", "stderr", "detail", "reason")
_BOOKKEEPING = frozenset(
    "type exit_code exitcode returncode return_code code status success ok iserror is_error metadata meta duration"
    " duration_seconds elapsed time took_ms took time_ms wall_time truncated is_truncated annotations id name role"
    " structuredcontent _meta interrupted isimage stderr stdout output tool tool_name call_id session_id".split()
)
"""Keys that a wrapper may have beside its text: with others it is data."""
_CODE_KEYS = frozenset(("exit_code", "exitcode", "returncode", "return_code", "exit_status"))
_FAILED_STATES = frozenset("error failed failure fail errored exception denied rejected unauthorized forbidden".split())
_EXIT = re.compile(
    r"<returncode>\s*(-?\d+)\s*</returncode>|\b(?:[Pp]rocess |[Cc]ommand )?(?:[Ee]xit(?:ed)?(?: with)?[ _]?(?:code"
    r"|status)?|[Rr]eturn(?:ed)?[ _](?:code|status))[:= ]{1,3}(?:code |status )?(-?\d+)\b"
)
_COMPLAINS = re.compile(r"(?:error|fatal|\w+Error)\b", re.IGNORECASE)
"""The line with the exit code is itself the message."""
_COLOURS = re.compile(r"\x1b\[[0-9;]{0,12}m")
_ENVELOPE = re.compile(r"</?(?:output|stdout|result|returncode|exit_code|response|tool_result|observation)>")
_AT_START = re.compile(r"Error processing line \d+ of .{0,2000}?Remainder of file ignored\s*", re.DOTALL)
"""The lines that a Python with a damaged `.pth` file prints before everything else."""


class Reading(NamedTuple):
    """A result as it is read: its `text` without wrappers, and its status."""

    text: str
    failed: bool = False
    waiting: bool = False
    """Something still runs, so that asking again is right."""
    nothing: bool = False
    """Nothing was found, or nothing came back."""
    checked: bool = False
    """It has the form of a test, build, type or lint run's result."""
    tested: bool = False
    """A runner's totals are in it, such as those that an editor adds to its own answer."""


def read_result(result: ToolResult, *, kind: Kind, given: JSON = None) -> Reading:
    """Return the reading of a result of a call of this kind with the arguments `given`.

    Words count also beside a flag that reports no error: many tools return their errors as texts. Those that an edit
    wrote itself do not: an editor shows what it has written.
    """
    text, coded = _unwrapped(result.output)
    if "Remainder of file ignored" in text:
        text = _AT_START.sub("", text, count=1)
    tail, looks = text[-TAIL:], kind.looks
    edits = kind.changes and not kind.shell  # an editor may add the result of tests to its own
    totals = not looks and _has(_RED, tail, _RED_MARKS)
    red = totals and not edits
    green = not looks and not red and _has(_GREEN, tail, _GREEN_MARKS)
    failed = result.is_error is True or coded is True or red
    made = edits and (_MADE.search(text[:REFUSAL_HEAD].lower()) or _UPDATED.search(tail)) is not None
    if not failed and coded is None and not made:
        failed = _says_failed(text, kind)
        if failed and edits:
            failed = _says_failed(_without_echo(text, given, kind), kind)
    nothing = (not failed or kind.searches) and says_nothing(text)
    failed = failed and not nothing
    waiting = not (failed or nothing or red or green) and says_unfinished(text)
    by_form = green or (red and _has(_TOTAL, tail, _RED_MARKS))
    checked = (kind.checks or (by_form and not kind.changes and not _USAGE.search(tail))) and not _DENIED_CALL.search(
        text[:REFUSAL_HEAD]
    )
    return Reading(text, failed, waiting, nothing, checked, totals or green)


def _says_failed(text: str, kind: Kind) -> bool:
    return _announces_error(text, looks=kind.looks, checks=kind.checks) or (
        kind.changes and _REFUSED.search(text[:REFUSAL_HEAD].lower()) is not None
    )


def _without_echo(text: str, given: JSON, kind: Kind) -> str:
    """Return the text without what the call wrote and would itself be read as an error; its beginning is kept."""
    for value in own_values(given):
        if not text.startswith(value) and _says_failed(value, kind):
            text = text.replace(value, "")
    return text


def _unwrapped(text: str) -> tuple[str, bool | None]:
    """Return the text within wrappers, and whether they report a failure; None if they report nothing."""
    bare, failed = (_COLOURS.sub("", text) if "\x1b" in text else text).strip(), None
    for _ in range(DEEPEST):
        if not bare or bare[0] not in '{["' or len(bare) > WRAPPED:
            break
        try:
            value = json.loads(bare)
        except (ValueError, RecursionError):
            break
        inner, said = _opened(value)
        failed = said if failed is None else failed
        if inner is None or inner == bare:
            break
        bare = inner.strip()
    head = bare[:SHORT]
    if "<returncode>" in head or "xit" in head or "eturn" in head:
        bare, code = _without_exit(bare)
        failed = code if failed is None else failed
    return bare, failed


def _opened(value: JSON) -> tuple[str | None, bool | None]:
    """Return the text in a wrapper, None for data, and whether it reports a failure."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, list):
        parts = [_part(item) for item in value]
        return ("\n".join(filter(None, parts)), None) if value and None not in parts else (None, None)
    if not isinstance(value, dict):
        return None, None
    failed = _reported(value)
    names = {name.lower(): name for name in value}
    if failed:
        for name in _ERROR_KEYS + _TEXT_KEYS:
            text = _texts(value.get(names.get(name, "")))
            if text:
                return text, failed
    if names.keys() <= _BOOKKEEPING.union(_TEXT_KEYS, _ERROR_KEYS):
        for name in _TEXT_KEYS:
            if name in names:
                inner = value[names[name]]
                text = inner if isinstance(inner, str) else _texts(inner)
                if text is not None:
                    error = value.get(names.get("stderr", ""))
                    return f"{text}\n{error}".strip() if isinstance(error, str) and error else text, failed
        if failed is not None:
            return "", failed
    return None, failed


def _part(item: JSON) -> str | None:
    """Return the text of an MCP content part; None if the item is something else."""
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        return None
    if item["type"] == "text" and isinstance(item.get("text"), str):
        return str(item["text"])
    if item["type"] == "tool_result":
        return _texts(item.get("content"))
    return None


def _texts(value: JSON) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        parts = [item if isinstance(item, str) else _part(item) for item in value]
        return None if None in parts else "\n".join(filter(None, parts))
    if isinstance(value, dict):
        message = value.get("message") or value.get("error") or value.get("text")
        return message if isinstance(message, str) else None
    return None


def _reported(value: Mapping[str, JSON]) -> bool | None:
    """Return whether a wrapper reports a failure, by its flag or its exit code."""
    for name, item in value.items():
        key = name.lower()
        if key in ("iserror", "is_error") and isinstance(item, bool):
            return item
        if key in ("success", "ok", "succeeded") and isinstance(item, bool):
            return not item
        if key in _CODE_KEYS and isinstance(item, int) and not isinstance(item, bool):
            return item != 0
        if key in ("status", "state", "outcome") and isinstance(item, str) and item.lower() in _FAILED_STATES:
            return True
        if key in ("error", "errors", "exception") and item and not isinstance(item, (bool, int)):
            return True
        if key in ("metadata", "meta") and isinstance(item, dict) and (inner := _reported(item)) is not None:
            return inner
    return None


def _without_exit(text: str) -> tuple[str, bool | None]:
    """Return the text without the line that reports an exit code, and whether that is a failure."""
    head, rest = text[:SHORT], text[SHORT:]
    found = _EXIT.search(head)
    if found is None:
        return text, None
    start, end = head.rfind("\n", 0, found.start()) + 1, head.find("\n", found.end())
    line = head[start : end if end >= 0 else len(head)]
    if found[1] is None and (start > 200 or len(line) > 60):  # a part of a sentence or of a log
        return text, None
    code = int(found[1] or found[2])
    if _COMPLAINS.match(head, start):
        return text, code != 0
    left = f"{head[:start]}{head[end + 1 :] if end >= 0 else ''}{rest}"
    return _ENVELOPE.sub("", left).strip(), code != 0


# ---- errors ----

_STARTS = re.compile(
    r"[\W_]*(?:[^\W_]+[ _]){0,2}[^\W_]*(?:errors?|exceptions?|traceback|fatal|panic)(?:[_ ]?(?:message|code|type))?\b"
)
_DENIED = re.compile(
    r"[\s\"':=-]*(?:(?:0|none|null|nil|false|free|handl\w+|logs?)\b|no\W*(?:errors?\b|$)|\[\]|\{\}|\"\")"
)
_DENIED_BEFORE = re.compile(r"\W*(?:\w+ )?(?:no|0|without|zero|not)[ _]")
_STARTS_FAILED = re.compile(
    r"[\w./+-]{1,40}:? (?:command )?not found\b"
    r"|(?!warn)(?:[\w./-]{1,40}: )?\W*(?:failed to|cannot|can't|could not|unable to|invalid |unknown |execution failed"
    r"|access denied|not (?:found|allowed|authorized|permitted)\b|permission denied|no such|request failed|timed out"
    r"|timeout\b(?! ?[=:] ?\d+ ?m?s?\s*(?:\n|$))"
    r"|http(?: error)? [45]\d\d|[45]\d\d (?:bad|unauthorized|forbidden|not found|internal|service|client"
    r"|server))"
)
_PHRASES = (
    "please retry", "please try again",
    "command not found", "no module named",
    "no replacement was performed", "did not appear verbatim", "string to replace not found",
    "syntax error: unexpected end of file", "unexpected eof while looking", "unbound variable", "curl: (",
    "automatic merge failed", "unable to locate package", "compilation errors.",
    "old_str not found", "no such file or directory", "permission denied", "is not recognized as",
    "modulenotfounderror:", "importerror:", "attributeerror:", "syntaxerror:", "typeerror:", "valueerror:", "keyerror:",
    "indexerror:", "nameerror:", "runtimeerror:", "connection refused", "could not resolve host",
)  # fmt: skip
FOREIGN_ERRORS = re.compile(
    # Chinese, Japanese, Korean
    "错误|錯誤|失败|失敗|无法|無法|异常|異常|不存在|找不到|未找到|拒绝|エラー|見つかりません|できません"
    "|오류|실패|찾을 수 없"
    # Russian, Arabic, Hindi
    "|[Оо]шибка|не найден|не удалось|[Оо]тказано|خطأ|فشل|त्रुटि|विफल"
    # German, French, Spanish, Portuguese, Italian, Polish, Turkish
    r"|\b(?:[Ff]ehler|fehlgeschlagen|nicht gefunden|ungültig|[Ee]rreur|[ÉéEe]chec|introuvable|impossible de|[Ff]alló"
    r"|fallido"
    r"|no se (?:encontró|pudo)|[Ee]rro|[Ff]alha|não (?:encontrado|foi possível)|[Ee]rrore|impossibile|non trovato"
    r"|[Bb]łąd|nie (?:znaleziono|udało)|[Hh]ata|bulunamadı|başarısız)\b"
)
_TRACEBACK = "Traceback (most recent call last)"
_NODE_ENDED = re.compile(r"^Node\.js v\d+[\d.]*\s*\Z", re.MULTILINE)
"""The last line of Node.js after an error that nothing caught."""
_RAISED = re.compile(r"^[\w.]*(?:Error|Exception|Interrupt|Exit)\b(?::|$).*", re.MULTILINE)
_MADE = re.compile(
    r"\b(?:been|was|were) (?:successfully )?(?:edited|updated|changed|written|created|replaced"
    r"|applied|saved|modified)\b"
)
"""An editor's report that a change was made, whatever else it shows."""
_UPDATED = re.compile(r"^File updated\. ", re.MULTILINE)
"""The report of SWE-agent's editor, after the lines of the file."""
REFUSAL_HEAD = 200
"""Characters at the start of an editor's answer in which it refuses a change."""
_REFUSED = re.compile(
    r"\b(?:introduced (?:a )?(?:new )?syntax error|could not find|(?:found )?multiple (?:matches|occurrences|before)"
    r"|multiple \(\d+\)|is not unique|does not exist|(?:not|nothing) (?:been |was )?(?:applied|replaced|changed"
    r"|edited)|no (?:changes?|replacements?|edits?|matches) (?:was |were |have been )?(?:made|performed|applied|found)"
    r"|(?:edit|change|patch|hunk #?\d*)s? (?:was |were |has been |have been )?(?:rejected|refused|failed)|(?:does"
    r"|did) not (?:match|apply)|identical|(?:exactly|are) the same|missing required|must be read first"
    r"|has not been read|usage:)",
)


def _announces_error(text: str, *, looks: bool, checks: bool) -> bool:
    """Return True if a result announces an error, at its start or by a traceback; "0 errors" does not.

    The words of a longer result are content if the call looks at something, and also if it checks, traceback aside.
    """
    if looks and len(text) > HEAD:
        return False
    if checks and len(text) > HEAD:
        return _ends_with_traceback(text)
    head = text[:HEAD].lower()
    if any(phrase in head for phrase in _PHRASES) or _STARTS_FAILED.match(head) or _ends_with_traceback(text):
        return True
    start = _STARTS.match(head)
    if start is not None and not (_DENIED.match(head, start.end()) or _DENIED_BEFORE.match(head)):
        return True
    return FOREIGN_ERRORS.search(text[:HEAD]) is not None


def _ends_with_traceback(text: str) -> bool:
    """Return True if at most `AFTER_RAISED` characters follow the last traceback.

    After more output the error was handled. An uncaught error of Node.js counts, too.
    """
    last = text.rfind(_TRACEBACK)
    if last < 0:
        return _NODE_ENDED.search(text[-40:]) is not None
    raised = _RAISED.search(text, last + len(_TRACEBACK))
    return raised is None or len(text) - raised.end() <= AFTER_RAISED


# ---- runners ----

_RED = re.compile(
    r"^(?:FAIL|--- FAIL)\b|(?<!\b0 )\bFAILED\b(?! ?[=:] ?0)|\b[1-9]\d* (?:tests? |specs? |examples?, )?(?:failed"
    r"|failures?|failing)\b|(?<!expected )\b(?:failures|errors|failed)[=:] ?[1-9]|^test result: FAILED|^BUILD FAILED"
    r"|^\[ERROR\] |\bBUILD FAILURE\b|\bFound [1-9]\d* errors?\b|\b[1-9]\d* errors? in \d"
    r"|^[^\s:]+:\d+:(?:\d+:)? (?:fatal )?error: |^\./[^\s:]+\.go:\d+:\d+: "
    r"|\b[1-9]\d* problems? \([1-9]\d* errors?|: error TS\d+:"
    r"|^(?:[\w.-]+: )?error(?:\[E\d+\])?: |^make: \*\*\* |^npm (?:ERR!|error) |^ERROR: (?!pip's dependency)",
    re.MULTILINE,
)
_TOTAL = re.compile(
    r"\b[1-9]\d* (?:tests? |specs? |examples?, )?(?:failed|failures?|failing)\b|\b(?:failures|errors|failed)[=:] ?[1-9]"
    r"|^(?:FAIL|--- FAIL)\b|^FAILED \S+|^FAILED \(|^test result: FAILED|^BUILD FAILED|\bBUILD FAILURE\b"
    r"|\bFound [1-9]\d* errors?\b|\b[1-9]\d* errors? in \d|^[^\s:]+:\d+:(?:\d+:)? (?:fatal )?error: |: error TS\d+:"
    r"|\b[1-9]\d* problems? \([1-9]\d* errors?|^error(?:\[E\d+\])?: |^make: \*\*\* |^npm (?:ERR!|error) ",
    re.MULTILINE,
)
"""A red line by which a result is that of a check, whatever ran: "FAILED" alone may be anything's."""
_DENIED_CALL = re.compile(
    r"user (?:doesn't|does not|did not|didn't) want to proceed|(?:user|permission) (?:rejected|denied|declined)"
    r"|requires approval|(?:was|were) rejected by the user|haven't granted",
    re.IGNORECASE,
)
"""A person has kept a call from being made."""
_GREEN = re.compile(
    r"\b[1-9]\d* (?:tests? )?(?:passed|passing)\b|^OK(?: \(.*\))?$|^(?:ok|PASS)[ \t]+\S|\bNo (?:issues|errors"
    r"|problems) found(?=\W*$| in )|^All (?:checks|tests) passed|^test result: ok|\bBUILD SUCCESS"
    r"|^Success: no issues found|\b0 (?:errors|failures|problems)\b|\b[1-9]\d* examples?, 0 failures",
    re.MULTILINE,
)
_BOAST = re.compile(r"\s*All tests passed\b")
"""A line that scripts print by themselves, whatever they test."""
_USAGE = re.compile(r"^usage: ", re.MULTILINE | re.IGNORECASE)
"""The program was called in a wrong way, and has checked nothing."""
_RED_MARKS = (".go:", "FAIL", "fail", "rror", "***", "ERR!", "ERROR")
_GREEN_MARKS = ("pass", "PASS", "OK", "ok", "SUCCESS", " found", "0 e", "0 f", "0 p")
"""Marks, one of which is in every line that `_RED`, or `_GREEN`, matches."""


def _has(pattern: re.Pattern[str], text: str, marks: Sequence[str]) -> bool:
    """Return True if a line matches; only lines with a mark are searched, which takes a fifth of the time."""
    return any(pattern.search(line) for line in text.split("\n") if any(mark in line for mark in marks))


def ending_line(reading: Reading) -> str:
    """Return the line of a check's result that says how it ended: a runner's last total, else why it failed.

    "" if no line says it.
    """
    wanted = _RED if reading.failed else _GREEN
    totals = [
        line.strip() for line in reading.text[-TAIL:].split("\n") if wanted.search(line) and not _BOAST.match(line)
    ]
    return totals[-1] if totals else message_line(reading.text) if reading.failed else ""


# ---- nothing ----

_EMPTY = frozenset(
    ("", "[]", "{}", "null", "none", "nil", "()", '""', "''", "0", "false", "no output", "(no output)", "<no output>",
     "empty", "(empty)", "no results", "no matches", "nothing found")
)  # fmt: skip
_NOTHING = re.compile(
    r"[\W_]*(?:(?:none|null|nil|empty(?: set| list| result)?)|(?:(?:there (?:are|is|were|was)|found|returned|got"
    r"|showing) )?(?:no|0|zero)\b(?! (?:errors?|exceptions?|problems?|issues?|failures?"
    r"|warnings?)\b)(?:[ \w'-]{0,40}?)\b(?:results?|match(?:es)?|rows?|records?|hits?|items?|entries|files?|data"
    r"|documents?|output|users?|emails?|messages?|events?|products?|orders?|flights?|pages?|answers?|spans?|contacts?"
    r"|transactions?|reservations?|occurrences?|references?)\b.{0,200}"
    r"|no (?:matching|relevant|similar|related|exact|such|further) [\w ]{1,40}"
    r"|no [^.\n]{1,40}\b(?:found|available|waiting"
    r"|left|remain(?:s|ing)?|pending|queued|exists?)\b.{0,40}|nothing (?:was )?found.{0,200}|(?:could "
    r"|did )?not (?:be )?f(?:ou|i)nd\b.{0,300}|no such .{0,200}|\w+[ :=]+\[\])[\W_]*"
    r"|(?:your )?command ran successfully and did not produce any output\.?",
    re.IGNORECASE | re.DOTALL,
)
_FOREIGN_NOTHING = re.compile(
    "没有(?:找到|结果|匹配)|未找到|无结果|暂无|沒有|見つかりません|結果なし|該当なし|결과 없음|찾을 수 없"
    "|ничего не найдено|не найдено"
    r"|\b(?:keine (?:ergebnisse|treffer|daten)|nichts gefunden|aucun(?:e)? (?:résultat|correspondance)|sin resultados"
    r"|no se encontr\w+|nenhum resultado|nessun risultato|brak wyników|sonuç (?:yok|bulunamadı))",
    re.IGNORECASE,
)


def says_nothing(text: str) -> bool:
    """Return True if a result means that nothing was found, or nothing came back: "[]", "No results", or no word."""
    if len(text) > SHORT:
        return False
    bare = text.strip()
    if not any(map(str.isalnum, bare)) or bare.lower().strip(" .!") in _EMPTY:
        return True
    if bare[0] in "{[" and _is_hollow(bare):
        return True
    return _NOTHING.fullmatch(bare) is not None or _FOREIGN_NOTHING.search(bare) is not None


def _is_hollow(text: str) -> bool:
    """Return True for JSON that has a list or an object in it, all of them empty, and no count above 0."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, (dict, list)) or not value:
        return True
    items = [*value.values()] if isinstance(value, dict) else value
    held = [item for item in items if isinstance(item, (dict, list))]
    counts = [item for item in items if isinstance(item, (int, float)) and not isinstance(item, bool)]
    return bool(held) and not any(held) and not any(counts)


# ---- unfinished ----

_UNFINISHED = re.compile(
    r"\b(?:running|pending|queued|in[ _-]?progress|processing|waiting|not (?:yet )?(?:ready|finished|complete[d]?"
    r"|available|done)"
    r"|still (?:\w+ing\b|in\b|not\b|open)|scheduled|scheduling|starting|initiali[sz]ing|provisioning|building"
    r"|deploying|creating|updating"
    r"|rebooting|restarting|stopping|terminating|draining|uploading|downloading|installing|compiling|preparing"
    r"|connecting"
    r"|syncing|synchroni[sz]ing|copying|extracting|pulling|pushing|indexing|migrating|training|rendering|transcoding"
    r"|encoding"
    r"|generating|importing|exporting|loading|executing|calculating|computing|analy[sz]ing|scanning|verifying"
    r"|fetching|polling"
    r"|enqueued|accepted|submitted|incomplete|unfinished|warming up|booting|spinning up|rolling out|retrying in"
    r"|check back"
    r"|try again (?:later|in)|come back later|please wait|hold on|eta|remaining|left to go|percent complete)\b"
    r"|[a-z]+_in_progress\b|containercreating|podinitializing|init:\d|^\W*(?:progress\W*)?\d{1,2}(?:\.\d+)? ?%"
    r"|[#=█▓▒░-]{4,}[>\] ]* ?\d{0,2}%"
    r"|\b(?:step|epoch|batch|iteration|chunk|part|layer)s? \d+ ?(?:/|of) ?\d+",
    re.IGNORECASE,
)
_FOREIGN_UNFINISHED = re.compile(
    "进行中|正在|处理中|排队|等待|运行中|執行中|處理中|尚未|实行中|実行中|処理中|待機中|進行中|お待ち|まだ"
    "|진행 ?중|실행 ?중|대기 ?중|처리 ?중"
    "|выполняется|в процессе|ожида|обрабатывается|в очереди|ещё не|еще не|قيد|جار|चल रह|प्रगति|กำลัง|đang "
    r"|\b(?:läuft|wird (?:noch )?(?:ausgeführt|verarbeitet|erstellt|geladen)|in bearbeitung|ausstehend|wartet"
    r"|noch nicht|en cours"
    r"|en attente|pas encore|en curso|en progreso|en ejecución|ejecutándose|pendiente|procesando|ejecutando|esperando"
    r"|todavía|aún"
    r"|em andamento|em execução|processando|pendente|aguardando|ainda|in corso|in attesa|in esecuzione|in uitvoering"
    r"|bezig|wacht"
    r"|w toku|trwa|oczekuje|devam ediyor|bekliyor|çalışıyor|işleniyor|pågår|väntar|käynnissä|odottaa)\b",
    re.IGNORECASE,
)
_ENDED = re.compile(
    r"crashloopbackoff|imagepullbackoff|errimagepull|oomkilled|(?<!\b0 )\b(?:failed|cancell?ed|aborted|exited"
    r"|terminated|dead|expired)\b|_failed\b|(?<!not )(?<!yet )\b(?:done|completed?|finished|succeeded"
    r"|success(?:fully)?|ready|100 ?%)\W*$",
    re.IGNORECASE,
)
"""A state that does not change by itself."""
_STATUS = re.compile(r"\b(?:status|state|phase|progress|stage)\W{1,5}([^\n]{1,60})", re.IGNORECASE)


def says_unfinished(text: str) -> bool:
    """Return True if a result reports something that still runs; a long one has to give a status."""
    if len(text) > SHORT:
        found = _STATUS.search(text, 0, HEAD)
        if found is None:
            return False
        text = found[1]
    unfinished = _UNFINISHED.search(text) or _FOREIGN_UNFINISHED.search(text)
    return unfinished is not None and _ENDED.search(text) is None
