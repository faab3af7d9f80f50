"""Masks secrets that a text announces (assignments, headers, options, "the password is") or that a detector finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeAlias

from ..exceptions import ExtraMissing
from ..types import JSON, Finding
from ._accounts import without_accounts, without_addresses
from ._secret_names import MASK, announces, is_common, is_no_secret, refers_at
from ._shapes import without_blocks, without_rests, without_shaped

_QUOTE = r"\\{0,8}[\"'`]"
_HINT = re.compile(
    r"(?i)pass|pwd|secret|token|cred|key|auth|cookie|kennwort|senha|contrase|пароль|密码|otp|pin|cvv|cvc|ssn|jwt|"
    r"bearer|sig|hmac|mnemonic|sess|sid|phrase|pat\b|login|identified|\s-[a-zA-Z]|csrf|xsrf|pepper|dsn"
)
"""Marks without which a text announces no secret; most texts have none of them."""
_HEAD = re.compile(
    r"(?<![\w$])(?P<name>(?:(?i:api|access|secret|private|auth|encryption|client|session|security|recovery|signing|"
    r"master|license|ssh|account|refresh|service|app)[ ])?(?=(?P<word>[^\W\d][\w.-]{1,80}))(?P=word))"
    rf"(?P<sep>(?:\[\d*\])?{_QUOTE}?\]?[ \t]*(?:(?:[:!]={{1,2}}|=>|={{1,3}}|"
    rf":(?![:/])|\|)[ \t]*|(?P<is>[ ](?:is|was)(?:[ ]now)?:?[ ]+)|"
    r"(?P<quoted>(?:[ ](?:to|as|of|set to))?[ ](?=\\*[\"'`]))|(?P<call>\((?=[\"']))))"
)
_BLOCK = re.compile(r"[|>][-+]?[ \t]*\n(?P<indent>[ \t]+)[^\n]*(?:\n(?P=indent)[^\n]*)*")
"""A YAML value over several lines."""
_OPENED = re.compile(_QUOTE)
_END = (
    r"[ \t]*(?:[,;&|]\s*[\"']?[A-Za-z_][\w.-]*[\"']?\s*[=:]|"
    r"\\{1,8}[nrt](?:\\|\s|$|[\"'A-Za-z_#$/-][\w.-]*[\"']?\s*(?:[=:]|\s)))"
)
_BARE = re.compile(rf"(?:(?!{_END})(?:[^\s\"'`]|\\{{0,8}}[\"'`](?![\s,;:)}}\]\\]|$)))+")
"""An unquoted value: up to white space, or to the next name in a list of settings."""
_WORDS_OF = ("password", "passwd", "pwd", "passcode", "passwort", "kennwort")
"""Names that may hold a passphrase of several words."""
_TAIL = ".,;:!?)}]>\\"
_OPTION = re.compile(r"(?<![^\s\"'`(\[,])(?P<dashes>--?)(?P<name>[A-Za-z][\w-]{1,60})(?P<sep>[\"']?,?[ \t]+)(?=[^\s-])")
_SET = re.compile(
    r"\b(?:setx|setenv|set[ ]-\w{1,4}|ENV|config(?:ure)?[ ]set|(?:[a-z]{1,9}_){1,3}header|Header[ ](?:set|add))[ ]+"
    r"(?P<name>[\w./:-]{2,80})(?P<sep>[ ]+)(?=[^\s=-])"
)
_IN_SENTENCE = re.compile(
    r"(?i)(\b(?:password|passwd|passcode|passphrase)[ ])([^\W_][^\s\"'`.,;:()\[\]{}<>=]*)(?![=(])"
)
"""A password in a sentence, without a sign between them."""
_OF = re.compile(
    r"(?i)(\b(?:password|passwd|passphrase|passcode|secret|token|api[ _-]?key)"
    r"(?:[ ](?:for|of)[ ](?:(?:the|my|his|her|our|your)[ ])?[\w.@-]{1,40}(?:[ ][\w.@-]{1,40})?"
    r"[ ](?:is|was)[ ](?:now[ ])?"
    r"|[ ](?:header|value):[ ]+|[ ]equals[ ]|[ \t]*(?:->|→|~>)[ \t]*|(?::?[*_`]{1,3}:?|:[*_`]{1,3})[ \t]+))"
    r"([^\W_](?:[^\s\"'`,;:()\[\]{}<>=]*[^\s\"'`,;:()\[\]{}<>=.!?])?)(?![=(])"
)
"""As above, with words or marks between: "the password for bob is ...", "password -> ...", "**Password:** ..."."""
_TURNED = re.compile(
    r"(?i)(?<![^\s\"'`(])([^\s\"'`,;:()]{3,80})(\\*[\"'`]?[ ](?:is|was)[ ](?:the|my|his|her|our|your|their)[ ]"
    r"(?:(?:new|old|right|correct|admin|root)[ ])?(?:password|"
    r"passphrase|passcode|secret|token|api[ ]key)\b)(?![ ]\w+[ ]of)"
)
_COMPARED = re.compile(
    r"(?P<quote>[\"'])(?P<value>[^\"'\\\n]{1,200})(?P<sep>(?P=quote)\s{0,4}[=!]==?\s{0,4})(?P<name>[\w.$]{1,80})"
)
"""A value before the name that it is compared with."""
_LIST = re.compile(r"[\[(](?=[^\W\d]|[\"'\\])[^\[\](){}]{1,400}(?=[\])]|$)")
_OBJECT = re.compile(r"\{\s*(?=\\*[\"'])(?!\\*[\"'](?:type|description|title|anyOf|\$ref)\\*[\"'])[^{}]{1,600}(?=\}|$)")
_BELOW = re.compile(r"\n(?P<indent>[ \t]+(?:- )?)(?P<value>[^\s:#-][^\n:#]*)(?:\n(?P=indent)[^\n:]*)*(?=\n|$)")
"""YAML values in the lines below their name."""
_MORE = re.compile(r"(?:[ ][^\W\d_]+){1,5}(?=[ \t]*(?:\n|$|[.,;\"'}]))")
"""More words of a passphrase, up to the end of its line."""
_HEADER = re.compile(
    r"(?i)(?P<head>\b(?:(?:proxy-)?authorization|(?:set-)?cookie|"
    r"(?<!\w-)x-[\w-]{0,60}(?:key|token|auth|secret|signature)[\w-]{0,60})"
    rf"(?P<close>{_QUOTE})?\s*[:=]\s*)(?P<quote>{_QUOTE})?(?P<value>[^\n]*)"
)
_PHRASE = re.compile(
    r"(?i)(?P<head>\b(?:pass[ _-]?phrase|(?:seed|recovery|mnemonic|backup)[ _-](?:phrase|words|code)|mnemonic)s?"
    r"(?:[ ](?:is|was)[ :]|\s*[:=])\s*)(?P<value>[^\s\"'`\\#][^\n.;\"'`\\]*)"
)


def without_secrets(text: str, *, accounts: bool = False, addresses: bool = False, detected: bool = True) -> str:
    """Mask secrets, and keep everything else, even numbers, hashes and paths.

    With `accounts`, user names are masked too, in home folders and before hosts; with `addresses`, those of machines.
    Raises `ExtraMissing` like `detectors`; without `detected`, only our own rules are used, which need no extra.
    """
    text = without_shaped(without_announced(without_blocks(text)))
    text = without_addresses(text) if addresses else text
    text = without_accounts(text) if accounts else text
    return without_rests(without_detected(text) if detected else text)


def masked_finding(finding: Finding, mask: Callable[[str], str] = without_secrets) -> Finding:
    """Return the finding with all of its texts masked, and what a name in its metadata announces as a secret."""
    return replace(
        finding,
        content=mask(finding.content),
        file_path=mask(finding.file_path),
        finding_type=mask(finding.finding_type),
        metadata={mask(name): _masked_value(value, name, mask) for name, value in finding.metadata.items()},
    )


def _masked_value(value: JSON, name: str, mask: Callable[[str], str]) -> JSON:
    if isinstance(value, Mapping):
        return {mask(inner): _masked_value(item, inner, mask) for inner, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked_value(item, name, mask) for item in value]
    if value in (None, "") or isinstance(value, bool):
        return value
    if announces(name):
        return MASK
    return mask(value) if isinstance(value, str) else value


def without_announced(text: str) -> str:
    """Replace every value that a name, a header or an option announces as a secret by "#"."""
    if not _HINT.search(text):
        return text
    text = _HEADER.sub(_masked_header, text)
    text = _PHRASE.sub(_masked_phrase, text)
    text = _COMPARED.sub(_masked_compared, _scanned(_scanned(_scanned(text, _HEAD), _OPTION), _SET))
    for pattern in (_OF, _IN_SENTENCE):
        text = pattern.sub(lambda match: match[0] if is_common(match[2].rstrip(_TAIL)) else f"{match[1]}{MASK}", text)
    return _TURNED.sub(lambda match: match[0] if is_common(match[1]) else f"{MASK}{match[2]}", text)


def _scanned(text: str, head: re.Pattern[str]) -> str:
    """Mask the values that begin where `head` ends, if its name announces a secret."""
    parts, done, at = [], 0, 0
    while (found := head.search(text, at)) is not None:
        at = found.end("name")
        name = found["name"][text[: found.start("name")].endswith("\\") :]  # the name in "\\nkey=" is "key"
        if not announces(name.rpartition(".")[2] or name) or _is_verb(found):
            continue
        value = _value_at(text, found.end(), found)
        if value is None:
            at = max(at, found.end() - 1)
            continue
        start, end = value
        parts += [text[done:start], MASK]
        done = at = end
    return "".join([*parts, text[done:]]) if parts else text


def _is_verb(head: re.Match[str]) -> bool:
    """Return True for "pass" before code, as in "pass `timeout=5` to the client"."""
    is_quoted = head.re is _HEAD and head["quoted"] is not None
    return is_quoted and head["name"].lower() == "pass" and head.string.startswith("`", head.end())


def _value_at(text: str, at: int, head: re.Match[str]) -> tuple[int, int] | None:
    """Return the span of the value that begins here, without its quotes; None if there is none."""
    if (block := _BLOCK.match(text, at)) is not None:
        return block.start("indent") + len(block["indent"]), block.end()
    if (below := _BELOW.match(text, at)) is not None and ":" in head["sep"]:
        return below.start("value"), below.end()
    if (group := _LIST.match(text, at) or _OBJECT.match(text, at)) is not None:
        words = re.findall(r"[^\W\d]\w*", group[0])
        return None if any(map(announces, words)) and group[0][1] not in "\"'\\" else (at + 1, group.end())
    if re.match(r"[\[({]\s*(?:#|\\*[\"'])", text[at : at + 8]) is not None:
        return None  # masked already, or an object whose values have names of their own
    if (opened := _OPENED.match(text, at)) is not None:
        end = _closed(text, opened.end(), opened[0])
        value = text[opened.end() : end]
        return None if not value or is_no_secret(value, head["name"], in_sentence=False) else (opened.end(), end)
    if refers_at(text, at) or (bare := _BARE.match(text, at)) is None:
        return None
    value = bare[0].rstrip(_TAIL) if not _wraps(bare[0]) else bare[0]
    if not value:
        return None
    in_sentence = "=" not in head["sep"]
    if in_sentence and value == "correct" and _ends_sentence(text, bare.end()):
        return None
    if is_no_secret(value, head["name"], in_sentence=in_sentence):
        return None
    more = _MORE.match(text, at + len(value)) if in_sentence and head["name"].lower().endswith(_WORDS_OF) else None
    whole = more is not None and not any(map(is_common, more[0].split()))
    return at, more.end() if more is not None and whole else at + len(value)


def _wraps(value: str) -> bool:
    """Return True for a call, a subscript or a placeholder, whose bracket belongs to it."""
    return value.rstrip(".,;:")[-1:] in ")]}>" and any(mark in value for mark in "([{<")


def _ends_sentence(text: str, at: int) -> bool:
    return (
        re.match(r"\s*(?:$|[.,;!?\n]|(?:and|but|for|so)\b)", text[at : at + 12]) is not None or text[at - 1] in ".,;!?"
    )


LONGEST = 4_000
"""The most characters of a quoted value that are searched for its end."""


def _closed(text: str, at: int, quote: str) -> int:
    """Return where the quote closes; one more backslash escapes it. In a cut text without one: the line's end."""
    inside = re.compile(rf"(?:(?!{re.escape(quote)})\\*[^\\])*").match(text, at, at + LONGEST)
    end = inside.end() if inside else at
    if text.startswith(quote, end):
        return end
    line = text.find("\n", at)
    return len(text) if line < 0 else line


def _masked_header(found: re.Match[str]) -> str:
    quote, value = found["quote"] or "", found["value"]
    close = quote or found["close"] or ""
    inside = re.match(rf"(?:(?!{re.escape(close)})\\*[^\\])*", value) if quote else re.match(r"[^\"'`\\]*", value)
    cookie = "cookie" in found["head"].lower() and "=" in value
    end = inside.end() if inside else len(value)
    if not quote and not cookie and (braced := re.match(r"[^\"'`\\]*?(?=[,}](?:\s|$))", value)) and value[:1] != "{":
        end = len(value) if _has_parameters(value) else min(end, braced.end())
    secret = value[:end].rstrip()
    rest = "" if _has_parameters(secret) and not quote else value[len(secret) :]
    words = secret.split()
    if not words or (is_no_secret(words[0], "authorization", in_sentence=True) and not _scheme(words)):
        return found[0]
    return f"{found['head']}{quote}{MASK}{rest}"


def _has_parameters(value: str) -> bool:
    """Return True for a scheme whose credentials are a list of parameters, some of them in quotes."""
    return "digest" in value[:7].lower() or "aws4" in value[:5].lower()


def _scheme(words: list[str]) -> bool:
    """Return True for a scheme and its credentials, as in "Basic dXNlcg=="."""
    return len(words) > 1 and words[0].lower() in ("basic", "digest", "ntlm", "oauth", "token", "bearer", "negotiate")


def _masked_compared(found: re.Match[str]) -> str:
    name = found["name"].rpartition(".")[2]
    if not announces(name) or is_no_secret(found["value"], name, in_sentence=False):
        return found[0]
    return f"{found['quote']}{MASK}{found['sep']}{found['name']}"


def _masked_phrase(found: re.Match[str]) -> str:
    words = found["value"].split()
    if is_no_secret(words[0], "passphrase", in_sentence=True):
        return found[0]
    return f"{found['head']}{MASK}"


SHORTEST = 5
"""The shortest finding that is masked everywhere; a shorter one would also mask ordinary words."""
_LEFT_OUT = frozenset(
    {
        "Public IP (ipv4)", "Private Key", "Base64 High Entropy String", "Hex High Entropy String", "Secret Keyword",
        "NPM tokens", "OpenAI Token", "JSON Web Token",
    }
)  # fmt: skip
"""Detectors that other rules replace. The last four take a time that grows with the square of a text's length."""
PIECE, SHARED = 4_000, 1_100
"""Characters that a detector reads at once, and those of a piece that the next one has, too: the longest token."""
_AROUND = " \t\n\"'=:"
"""Characters around the secret that some findings include."""
_BLANKS = re.compile(r"(\s{4})\s+")
"""White space that detectors do not read beyond its beginning: their time grows with the third power of its length."""
Find: TypeAlias = Callable[[str], Iterable[str]]


def detectors(what: str = "learning") -> tuple[Find, ...]:
    """Return the detectors of detect-secrets.

    Raises `ExtraMissing`, with the command that installs what `what` needs.
    """
    try:
        return _loaded()
    except ImportError as error:
        raise ExtraMissing(what, "detect-secrets", "memory") from error


@lru_cache(maxsize=1)
def _loaded() -> tuple[Find, ...]:
    util: Any = import_module("detect_secrets.core.plugins.util")
    found = util.get_mapping_from_secret_type_to_class()
    return tuple(found[kind]().analyze_string for kind in sorted(found) if kind not in _LEFT_OUT)


def without_detected(text: str) -> str:
    """Replace every secret that a detector finds by "#"."""
    read = _BLANKS.sub(r"\1", text)
    pieces = [read[at : at + PIECE] for at in range(0, max(1, len(read) - SHARED), PIECE - SHARED)]
    found = {secret.strip(_AROUND) for find in detectors() for piece in pieces for secret in find(piece)}
    return _replaced(text, filter(_is_specific, found))


def _replaced(text: str, secrets: Iterable[str]) -> str:
    """Mask each of the secrets wherever it stands, in one pass for however many, the longest first."""
    words = sorted(secrets, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, words)), MASK, text) if words else text


def _is_specific(found: str) -> bool:
    return len(found) >= SHORTEST and not is_no_secret(found, "password", in_sentence=False)
