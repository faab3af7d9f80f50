"""Masks user names and addresses of machines: private in a lesson for others, and no secrets within a team."""

from __future__ import annotations

import re

from ._secret_names import MASK

ACCOUNTS = frozenset(
    "root user users admin administrator ubuntu debian ec2-user centos runner runneradmin vagrant app node jovyan "
    "circleci vscode codespace coder public default git www-data daemon nobody guest test tester testuser system "
    "postgres mysql redis nginx jenkins docker staff wheel home shared all me you none null true false self "
    "undefined agent assistant human bot model swebench openhands anonymous username login name the a an any "
    "other bin sys sudo local service build builder ci deploy devuser developer dev work workspace project "
    "projects repo data src code linuxbrew string str id int it is and or not for in of to see file".split()
)
"""Accounts and home folders that belong to no person, and placeholders for an account."""

HOME = re.compile(
    r"(?P<head>(?:/home/|/Users/|/var/users/|/export/home/|"
    r"(?i:\b[a-z]:(?:\\+|/)(?:users|documents and settings)(?:\\+|/)))"
    r"|(?<![\w/.~])~(?=[a-z]))(?P<name>[^\s/\\\"'`:;,|&<>()*?$#\[\]{}]+(?: [A-Z][\w.-]*(?=[/\\]))?)"
)
_LISTED = re.compile(r"(?m)((?:^|\s)[-dlbcps][rwxsStT-]{9}[.+@]?\s+\d+\s+)(\S+)(\s+)(\S+)(?=\s+\d)")
_AT = re.compile(
    r"(\b(?:ssh|scp|sftp|rsync|mosh|ssh-copy-id)\b[^\n|;&]{0,80}?\s)([\w.-]+)(?=@)|(?<![\w.@/-])()([\w.-]+)(?=@[\w.-]+:[~/])"
)
_ADDRESSES = (
    re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}(?![\w:])"),
    re.compile(
        r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:){2,7}(?::?[0-9a-fA-F]{1,4})(?::[0-9a-fA-F]{1,4}){0,5}(?![\w:])|"
        r"(?<![\w:.])(?:[0-9a-fA-F]{1,4}:){0,6}[0-9a-fA-F]{1,4}::(?:[0-9a-fA-F]{1,4}:){0,6}[0-9a-fA-F]{1,4}(?![\w:])"
    ),
)
"""They also match times and places in a file ("12:30:45", "main.c:10:5")."""


def without_accounts(text: str) -> str:
    """Mask user names: in home folders, in file listings, and before a host."""
    text = HOME.sub(lambda match: match["head"] + unless_common(match["name"]), text)
    text = _LISTED.sub(lambda match: f"{match[1]}{unless_common(match[2])}{match[3]}{unless_common(match[4])}", text)
    return _AT.sub(lambda match: (match[1] or "") + unless_common(match[2] or match[4]), text)


def without_addresses(text: str) -> str:
    """Mask hardware addresses and addresses of IPv6."""
    for pattern in _ADDRESSES:
        text = pattern.sub(MASK, text)
    return text


def unless_common(name: str) -> str:
    """Return "#" for an account that may be a person's, and every other name as it is."""
    return name if name.lower() in ACCOUNTS or name.strip("#") == "" else MASK
