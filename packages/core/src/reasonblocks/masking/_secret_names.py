"""Decides which names announce a secret ("DB_PASSWORD", "clientSecret") and which values after them are none."""

from __future__ import annotations

import re
from functools import lru_cache

MASK = "#"
"""Replaces every secret and name."""

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")
_STRONG = frozenset(
    "password passwords passwd passphrase passcode passwort kennwort pwd secret secrets token credential credentials "
    "cred creds apikey auth authorization cookie cookies authentication otp totp pin cvv cvc ssn jwt bearer signature "
    "sig hmac mnemonic contrasena senha пароль 密码 csrf xsrf sid sessid sessionid passkey pepper dsn".split()
)
"""Parts of a name; any one of them makes it the name of a secret."""
_ENDINGS = (
    "password", "passwd", "passphrase", "passcode", "secret", "token", "credentials", "pwd", "apikey", "secretkey",
    "privatekey", "accesskey", "authkey", "accountkey", "encryptionkey", "masterkey", "sessionid", "sessid", "dbpass",
    "userpass", "sshpass", "pgpass", "rootpass", "keypass", "storepass", "adminpass", "contraseña", "authtok",
)  # fmt: skip
"""Endings of a name that is written as one word."""
_KEYS = frozenset(
    "api access secret private auth encryption encrypt decryption signing sign account storage client service ssh "
    "license licence master session shared deploy hmac crypt aes rsa pgp gpg wallet security recovery app application "
    "host webhook admin root write server consumer priv subscription ocp cookie pass db database project".split()
)
"""Before "key": `api_key`, and not `sort_key`."""
_PLAIN_KEYS = frozenset(
    "primary foreign sort partition unique composite candidate surrogate natural cache lookup public index group row "
    "column field hash range map dict json object query param parameter route routing message event config setting "
    "registry default answer translation translate lang ctrl control shift alt meta enter escape esc tab arrow up down "
    "left right space delete hot shortcut any press function dedup idempotency tag sorting ordering ordered".split()
)
"""Before "KEY" in a variable's name: `SORT_KEY`, and not `STRIPE_KEY`."""
_AROUND = frozenset(
    "count counts type types length len limit limits policy policies name names file files path paths filename dir "
    "folder url uri endpoint expiry expires expiration expire expired ttl age size required enabled disabled field "
    "fields input form reset manager store budget usage rate ratio index list var prompt strength rule rules format "
    "mode algorithm version timeout error errors exception status at in changed created updated required hint max min "
    "total valid invalid missing verified check checks checker validator provider handler service class object func "
    "header headers param params label placeholder tokenizer pos position ids num number method scheme backend model "
    "page column attempts history confirmation agent group groups socket sock sensitive based map set dict jar "
    "protection middleware arn engine rotation scanner scanning leak leaks request response requests domain "
    "samesite secure httponly".split()
)
"""Last parts of a name that describes a secret and does not hold it."""
_SUFFIXES = frozenset("value val text string str raw plain b64 base64 hex env prod dev test old new current main live "
                      "default key id hash digest data".split())  # fmt: skip


@lru_cache(maxsize=4096)
def announces(name: str) -> bool:
    """Return True if a secret follows this name."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    while len(parts) > 1 and parts[-1] in _SUFFIXES and parts[-1] not in ("key", "id"):
        parts.pop()
    if not parts or parts[-1] in _AROUND:
        return False
    if " " in name and parts[-1] not in _STRONG and parts[-1] not in ("key", "id", "pass"):
        return False
    if parts[-1] == "id":
        return (len(parts) > 1 and parts[-2] in ("session", "secret", "sess", "token")) or parts == ["sid"]
    if parts[-1] == "key":
        if len(parts) > 1 and (parts[-2] in _KEYS or not _STRONG.isdisjoint(parts[:-1])):
            return True
        return len(parts) > 1 and name.isupper() and "_" in name and parts[-2] not in _PLAIN_KEYS
    if parts[-1] in ("pass", "pat"):
        return len(parts) > 1 or parts[-1] == "pass"
    if parts[-1] == "tokens":
        return len(parts) > 1 and parts[-2] in ("access", "refresh", "auth", "api", "session", "secret", "bearer")
    return not _STRONG.isdisjoint(parts) or "".join(parts).endswith(_ENDINGS)


_LITERAL = frozenset(
    "none null nil true false undefined str string int integer bool boolean bytes float optional required any object "
    "yes no on off secretstr password text basic digest ntlm oauth oauth2 lambda prompt self default".split()
)
_DESCRIBING = frozenset(
    "a about above absent accepted active added already also always an and any are as at available be because been "
    "before being below blank bad broken but by can cannot case changed checked compromised configured could created "
    "deleted denied deprecated different disabled do does done empty enabled encrypted enough enter exactly expired "
    "expiring for found from generated given good handled has have hashed here hidden how i if ignored illegal in "
    "inactive incomplete incorrect inside insecure invalid is issued it its just kept known leaked likely literally "
    "long longer lost malformed mandatory may me might mismatched missing must my naked needed neither never no none "
    "nor not now null obsolete of off ok okay on one only optional or our out outdated outside over passed per please "
    "plain possibly present probably protected provided read received refreshed refused rejected reset required "
    "returned revoked rotated saved see sent set shall short should shown simply so some something specified stale "
    "still stored supplied supported taken than that the their "
    "them then there these they this those to too unavailable "
    "undefined unique unknown unset unsupported unused up updated us used using valid validated verified very visible "
    "was we weak well were what when where whether which while will with within without wrong yet you your "
    "authentication authorization auth failed failure error errors field fields count request requests denied "
    "incorrectly correctly successfully similar common same "
    "equal identical safe secure unchanged nothing everything".split()
)
"""Words that describe a secret when they follow its name."""
_MASKED = re.compile(r"(?:[#*•.…_-]*|[xX]{3,})(?:\[?(?i:redacted|masked|hidden|filtered|removed)\]?)?")
_REFERENCE = re.compile(
    r"\$[A-Z_][A-Z_0-9]*|\$\{+[^{}]{1,60}\}+|\$\([^()]{0,60}\)?|"
    r"%[A-Z_]+%|%\(?\w*\)?s|\{+\s*[\w.]{0,40}\s*\}+|<[\w -]{1,40}>|"
    r"(?:os|self|cls|process|config|settings|args|request|req|env|ctx|secrets|credentials|options|params|kwargs|data|"
    r"user|session|this|app|var|local|module|st|state|vault|cfg|conf|current_app|form|response|resp|headers)"
    r"[.\[](?:[\w.\"'()\[\], -]*[)\]]|[A-Za-z_.]+)|"
    r"(?:[a-z_]+\.)*[a-z_]{2,}\((?:[a-z_., \"'=]*)\)?|(?:Optional|Union|List|Dict|Annotated)\[[\w\[\], |]*\]?"
)


def is_no_secret(value: str, name: str, *, in_sentence: bool) -> bool:
    """Return True for a type, a variable, a placeholder or, if `in_sentence`, a word about the secret."""
    word = value.strip().lower()
    if word in _LITERAL or (in_sentence and word.rstrip(".,:;!?") in _DESCRIBING) or _MASKED.fullmatch(value):
        return True
    if _REFERENCE.fullmatch(value):
        return True
    plain = re.fullmatch(r"\$?[a-z]+(?:_[a-z]+)*|[A-Z]+(?:_[A-Z]+)+", value)
    if plain is None:
        return False
    bare = word.lstrip("$")
    return bare == name.lower() or (("_" in bare or bare != word) and announces(bare))


def refers_at(text: str, at: int) -> bool:
    """Return True if a variable, a call or a placeholder is here, with nothing after it."""
    found = _REFERENCE.match(text, at)
    return found is not None and text[found.end() : found.end() + 1].strip("\"'`,;:.)}]|&\\") in ("", " ", "\n", "\t")


def is_common(word: str) -> bool:
    """Return True if this word after "password" continues the sentence."""
    word = word.lower()
    return word in _DESCRIBING or word in _AROUND or word in _LITERAL or word in _STRONG or word in _GOES_ON


_GOES_ON = frozenset(
    "again ask asks box boxes came change changes confirm cracking dialog dump entry entries equals every expires "
    "first flow guess guessing hashes hashing it's key keys later like lookup "
    "mail needs pair pairs phrase pop protects question questions "
    "recover recovery resets reuse safely screen section separately sharing so step storage strategy string strings "
    "text time today update updates via works written wrong".split()
)
