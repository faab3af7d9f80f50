"""Masks secrets recognised by their form: keys, tokens, URLs with a login, logins of commands."""

from __future__ import annotations

import re

from ._secret_names import MASK

_WORD = r"(\\{0,8}[\"'])?(?:(?<=[\"'])[^\"'\\\n]{1,400}|(?<![\"'])[^\s\"'|;&\\]+)"
"""A word of a command, or a quoted text; the opening quote is a group."""
_BLOCKS = (
    # PEM and PGP blocks, also escaped, on a single line, or cut at either end
    re.compile(
        r"-----BEGIN [A-Z0-9 ]{3,40}-----(?:(?!-----)[\s\S]){0,20000}-----END [A-Z0-9 ]{3,40}-----|"
        r"-----BEGIN [A-Z0-9 ]{3,40}(?:-----)?"
        r"(?:(?:\s|\\{1,8}[nr])+(?:(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]*|[\w+/=]{16,}))*(?:(?:\s|\\{1,8}[nr])+[\w+/=]+$)?"
    ),
    re.compile(r"PuTTY-User-Key-File-\d:[\s\S]{0,8000}"),
    re.compile(r"\b(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-\w+|sk-ssh-\w+@\S+)\s+[\w+/=]{8,}(?:[ \t]+[^\s\"'\\]+)?"),
)
_WRAP = (
    r"[ \t]*(?:\\{0,8}[\"'`][ \t]*)?(?:[+\\=.][ \t]*)?(?:\r?\n|\\{1,8}n)[ \t>|]*(?:[+.][ \t]*)?"
    r"(?:[fFrRbBuU]{0,2}\\{0,8}[\"'`])?"
)
"""A line break within a key: with indentation, the marks of a quoted mail, or the quotes of a string in parts."""
_ALONE = r"(?=[ \t]*(?:[\"'`)\]},;\\+]|\r?\n|$))"
_MIXED = r"(?=[\w+/=-]*\d)(?=[\w+/=-]*[a-z])(?=[\w+/=-]*[A-Z])"
_REST = re.compile(
    rf"((?<![\w#])#{_WRAP})(?!(?:[0-9]+|[0-9a-fA-F]+)(?![\w+/=-]))(?:"
    rf"{_MIXED}[\w+/=-]{{8,}}{_ALONE}"
    rf"|{_MIXED}[\w+/=-]{{16,}}(?![\w+/=:(.-])"
    rf"|(?=[a-z]*\d)(?=\d*[a-z])[a-z\d]{{12,}}(?![\w+/=-]){_ALONE}"
    rf"|[\w+/]{{7,}}={{1,2}}(?![\w+/=-]){_ALONE})"
)
"""The rest of a secret on the next line. A word, a number, a hash and a path are none."""
MAX_LINES = 16
"""Lines of one secret that are masked, at most."""
_CUT_BLOCK = re.compile(r"(?<![\w+/=])(?:[\w+/=]{4,100}(?:\s|\\{1,8}[nr])+){1,60}-----END [A-Z0-9 ]{3,40}-----")
"""The end of a block whose beginning was cut."""
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\beyJ[\w-]{6,}(?:\.[\w-]*){0,4}"), "#"),
    # the login in a URL, and the secret part of a webhook's URL
    (
        re.compile(
            r"(\b[a-zA-Z][\w+.-]{1,30}://)(?!#@)(?:[^\s/@\"'<>:]{0,100}:(?!\d+/)[^\s\"'<>]{0,300}|[^\s/@\"'<>]{1,300})@(?=[\w.\[#-])"
        ),
        r"\1#@",
    ),
    (re.compile(r"(\bjdbc:oracle:\w{1,20}:)[^\s/@\"']{1,100}/[^\s@\"']{1,100}(?=@)"), r"\1#"),
    (
        re.compile(
            r"(?i)(https?://(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks|"
            r"[\w.-]+\.webhook\.office\.com/webhookb2|hooks\.zapier\.com/hooks)/)[\w/@.-]+"
        ),
        r"\1#",
    ),
    # keys with a known prefix
    (
        re.compile(
            r"(?<![\w-])(?:sk-(?:proj-|ant-|or-|live-|svcacct-)?|[spr]k_(?:live|test)_|gh[pousr]_|github_pat_|"
            r"gl(?:pat|dt|rt|cbt|ptt|soat)-|xox[abeoprs]-|xapp-|AIza|ya29\.|GOCSPX-|AKIA|ASIA|AROA|AGPA|ABIA|SG\.|npm_|"
            r"pypi-|hf_|dop_v1_|shp(?:at|ca|pa|ss)_|sq0(?:atp|csp)-|EAA[A-Z]|hv[sb]\.|lin_api_|figd_|dckr_pat_|PMAK-|NRAK-|"
            r"NRJS-|rubygems_|sntrys_|glsa_|tskey-|whsec_|r8_|gsk_|xai-|pplx-|AGE-SECRET-KEY-|secret-token:|apify_api_|phc_|"
            r"pul-|AT[AC]TT|key-(?=[0-9a-f]{16}))"
            r"(?=[\w./+=-]{0,80}(?:\d|[a-z][A-Z]|[A-Z][a-z]|[A-Za-z]{12}))[\w./+=-]{6,}"
        ),
        "#",
    ),
    # one of these keys that breaks before its first long part
    (
        re.compile(
            rf"(?<![\w-])sk-(?:proj|ant|or|live|svcacct)-(?:[\w]{{1,12}}-?)?{_WRAP}"
            rf"(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{{20,}}{_ALONE}"
        ),
        "#",
    ),
    (re.compile(r"\$(?:1|2[abxy]?|5|6|7|y|apr1|argon2\w*|pbkdf2[\w-]*|scrypt)\$[^\s\"':,;]+"), "#"),
    (re.compile(r"\{(?:SSHA|SHA|SMD5|MD5|CRYPT)\d*\}[\w+/=.$]+"), "#"),
    (
        re.compile(
            r"(?i)(\bbearer\s+)(?!#|(?:token|tokens|auth\w*|scheme|realm|header|access|required|error|is|was|and|or|"
            r"in|for|with|format|type|from|format)\b)[\w.~+/=-]{3,}"
        ),
        r"\1#",
    ),
    (re.compile(r"(\b[Bb]asic\s+)(?=\S*(?:[a-z][A-Z]|\d|=))[\w+/]{6,}={0,2}"), r"\1#"),
    # separate names and values: XML, lists of settings
    (
        re.compile(
            r"(?i)(<(\w{0,60}(?:password|passwd|pwd|secret|token|api_?key|"
            r"credentials?)\w{0,60})\b[^<>]{0,300}>)[^<#]{1,400}(?=</|$)"
        ),
        r"\1#",
    ),
    (
        re.compile(
            r"(?i)(\\{0,8}[\"']?\b(?:key|name|id)\\{0,8}[\"']?\s*[:=]\s*\\{0,8}[\"'][\w.-]{0,60}(?:pass(?:word|wd)?|pwd|secret|token|api[_-]?key|"
            r"access[_-]?key|credential)s?\\{0,8}[\"'][\s,]*\\{0,8}[\"']?value\\{0,8}[\"']?\s*[:=]\s*\\{0,8}[\"'])[^\"'\\\n]{1,400}"
        ),
        r"\1#",
    ),
    # logins of files and commands
    (re.compile(r"(?i)(\blogin\s+)\S+(\s+password\s+)\S+"), r"\1#\2#"),
    (re.compile(r"(?<!\S)([\w.*-]+:(?:\d{2,5}|\*|#):)[^:\s]+:[^:\s]+:\S+(?!\S)"), r"\1#"),
    (
        re.compile(
            rf"((?:^|[\s;&|(])(?:sudo\s+)?(?:mysql\w*|mariadb[\w-]*|sshpass|mongo\w*|"
            rf"7z|docker\s+login|podman\s+login)\b[^\n|;&]{{0,300}}?\s-p[ =]?){_WORD}"
        ),
        r"\1\2#",
    ),
    (re.compile(rf"(\b(?:redis-cli|mosquitto_\w+)\b[^\n|;&]{{0,300}}?\s-[aP]\s*){_WORD}"), r"\1\2#"),
    (re.compile(rf"(\b(?:zip|unzip)\b[^\n|;&]{{0,300}}?\s-P\s*){_WORD}"), r"\1\2#"),
    (re.compile(rf"(\bldap\w+\b[^\n|;&]{{0,300}}?\s-w\s*){_WORD}"), r"\1\2#"),
    (
        re.compile(
            r"(\b(?:curl|wget|http)\b[^\n|;]{0,300}?\s(?:-[a-zA-Z]{0,6}u|-U|-a|--user|--proxy-user)[ =]?(?=\S*:))"
            + _WORD
        ),
        r"\1\2#",
    ),
    (re.compile(r"(\bsmbclient\b[^\n|;]{0,300}?\s-U\s*)[^\s%]+%\S+"), r"\1#"),
    (re.compile(r"(\s-pass(?:in|out)?\s+pass:|\bpass:(?=\S*$))[^\s\"'\\]+"), r"\1#"),
    (re.compile(rf"(\bopenssl\s+enc\b[^\n|;&]{{0,300}}?\s-k\s+){_WORD}"), r"\1\2#"),
    (
        re.compile(
            rf"(\becho\s+(?:-\w+\s+)?){_WORD}(?=\s*\|\s*(?:sudo\s+-S|sudo\s+\S+\s+--stdin|passwd\b|docker\s+login|"
            r"\S{1,100}[^\n|]{0,300}--(?:password|passphrase|token|with-token)\S*|gh\s+auth|cryptsetup|chpasswd))"
        ),
        r"\1\2#",
    ),
    (re.compile(rf"(?i)(\bidentified\s+by\s+(?:password\s+)?){_WORD}"), r"\1\2#"),
    (re.compile(rf"(\bssh-keygen\b[^\n|;&]{{0,300}}?\s-[NP]\s*){_WORD}"), r"\1\2#"),
    # positional arguments
    (
        re.compile(
            r"(?i)(\b(?:getenv|get|setdefault|config|env|pop)\(\s*\\{0,8}[\"'][\w.-]{0,60}(?:pass(?:word|wd)?|secret|token|key|pwd)\\{0,8}[\"']\s*,"
            r"\s*\\{0,8}[\"'])[^\"'\\\n]{1,200}"
        ),
        r"\1#",
    ),
    (
        re.compile(
            r"(?i)(\b(?:login|log_in|authenticate|sign_?in|(?:http)?(?:basic|digest)_?auth)\(\s*\\{0,8}[\"'])[^\"'\\\n]{1,80}(\\{0,8}[\"']\s*,\s*\\{0,8}[\"'])[^\"'\\\n]{1,200}"
        ),
        r"\1#\2#",
    ),
    (
        re.compile(
            r"(?i)(\((?:\s*\w{1,40}\s*,)?\s*b?\\{0,8}[\"'][\w.-]{0,60}(?:password|passwd|secret|token|api[_-]?key)\\{0,8}[\"']\s*,"
            r"\s*b?\\{0,8}[\"'])[^\"'\\\n]{1,200}"
        ),
        r"\1#",
    ),
    # a header in a list of pairs
    (
        re.compile(
            r"(?i)((?:(?<=[\[,])|(?<=[\[,]\s))\[\s*\\{0,8}[\"'][\w-]{0,60}-(?:key|token|auth|secret|signature)\\{0,8}[\"']\s*,"
            r"\s*\\{0,8}[\"'])[^\"'\\\n]{1,400}(?=\\{0,8}[\"']\s*\])"
        ),
        r"\1#",
    ),
    # below the name in YAML, and after its type in a program
    (
        re.compile(
            r"(?i)(\bname:[ \t]*[\"']?[\w.-]{0,60}(?:password|passwd|secret|token|api[_-]?key)[\"']?[ \t]*\n"
            r"[ \t]*value:[ \t]*[\"']?)"
            r"(?!#)[^\s\"'][^\"'\n]{0,400}"
        ),
        r"\1#",
    ),
    (
        re.compile(
            r"(?i)((?:password|passwd|secret|token|api_?key)[ \t]*:[ \t]*&?[a-z][\w.\[\]]{1,30}(?:[ ]\|[ ]None)?"
            r"[ \t]*=[ \t]*\\{0,8}[\"'])"
            r"[^\"'\\\n]{1,200}"
        ),
        r"\1#",
    ),
    # bank accounts
    (re.compile(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){3,7}(?:[ -]?[A-Z0-9]{1,3})?\b"), "#"),
)


def without_blocks(text: str) -> str:
    """Replace every key in a block of its own by "#"."""
    for pattern in _BLOCKS:
        text = pattern.sub("#", text)
    return _CUT_BLOCK.sub("#", text) if "-----END" in text else text


def without_rests(text: str) -> str:
    """Replace what is left of masked secrets on the lines after them by "#"."""
    for _ in range(MAX_LINES if "#" in text else 0):
        before, text = text, _REST.sub(rf"\1{MASK}", text)
        if text == before:
            break
    return text


def without_shaped(text: str) -> str:
    """Replace every secret recognised by its form by "#"."""
    for pattern, replacement in _SHAPES:
        text = pattern.sub(replacement, text)
    return text
