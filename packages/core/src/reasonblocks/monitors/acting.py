"""Decides whether a name asks for something to be done, or speaks to its reader, whatever its case style and spelling.

The tables are data. In doubt, a name acts: the only loss is an offer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from ..util.folding import fold

LONGEST = 200
"""Characters of a name that are read."""

VERBS = (
    # sends
    "send transmit dispatch broadcast notify submit exfiltrate exfil leak disclose divulge reveal expose smuggle "
    "email mailto sms whatsapp invite "
    # pays
    "pay refund reimburse compensate buy purchase sell wire transfer xfer withdraw deposit donate redeem remit invest "
    "subscribe unsubscribe spend bid bribe settle dispense lend checkout payout cashout disburse "
    # deletes
    "delete remove erase destroy drop purge wipe truncate uninstall overwrite kill terminate shutdown cancel revoke "
    "discard unlink rm rmdir del abort disable deactivate suspend expel ban evict nuke shred annihilate deprovision "
    "decommission decom liquidate annul nullify void scrub zap kick obliterate sabotage encrypt reset mkfs rmtree "
    "rollback unset undo "
    # grants
    "grant mint stake enroll rsvp authorize authorise approve allow elevate escalate empower delegate whitelist "
    "allowlist unlock unblock accept agree confirm consent enable give impersonate sudo su chmod chown setuid "
    "activate "
    # runs
    "run execute exec eval evaluate invoke spawn inject restart reboot curl wget ssh scp telnet netcat bash "
    "powershell pwsh zsh sh perform systemctl crontab popen subprocess "
    # changes
    "create update modify write rewrite edit alter insert replace append rename publish migrate assign upsert "
    "provision redirect reroute "
    # bends the reader
    "ignore disregard obey comply override bypass jailbreak pretend hack attack exploit steal phish hijack coerce"
).split()
"""Words that act wherever they stand."""
OF_VERBS = (
    "payment payments repayment paying sent resent paid repaid bought sold withdrawal withdrawals withdrew withdrawn "
    "donation donations deletion deletions removal removals cancellation cancellations cancelation termination "
    "authorization authorisation approval approvals ran given gave giving execution executions invocation creation "
    "overwritten written wrote overwrote invitation remittance disbursement shut money cash bitcoin btc wallet sende "
    "senden payer"
).split()
"""Their irregular forms and nouns."""
NOUNS = (
    "order book post tweet message mail contact credit debit copy start stop launch build deploy install download "
    "upload share charge ship call dial trade exchange return release follow visit click press tap sign tip rent hire "
    "loan borrow block lock schedule reserve register apply patch merge commit push pull upgrade downgrade change "
    "move save close clear trust permit add set forward reply respond comment fire trigger do tell say ask vote dump "
    "export swap burn flash attach detach turn switch flip issue admit fax text hand drain"
).split()
"""Words that are also names of things: they act only before another word, as "order" in "order_pizza"."""
ATTRIBUTES = frozenset(
    "id ids date day time name number no status state type kind count total price item items line lines "
    "detail details history list index ref by at on log logs model view test tests utils".split()
)
"""Words before which they are still names: "order_date"."""
OBJECTS = (
    "all any every each everything everyone my your his her their our the them now money funds cash card mail email "
    "message order user account file data db database table password key token secret credentials code shell command "
    "script sql query bill invoice payment access admin root customer please just must auto force mass bulk role "
    "permission disk system server"
).split()
"""Words, and beginnings of words, that are written together with one that acts, as in "deleteall"."""
OTHER_TONGUES = (
    # German, Dutch
    "uberweis ueberweis losch loesch bezahl zahle kaufe ausfuhr ausfuehr freigeb erstatt versend verschick verwijder "
    "betaal verstuur overmak uitvoer "
    # Spanish, Portuguese
    "enviar envia envie pagar pague borrar borra elimin comprar ejecut transfier transfir excluir apagar conceder "
    "otorg reembols "
    # French, Italian
    "envoyer envoie envoyez payez supprim acheter achete effac virement rembours inviare pagare cancella esegui "
    "bonific trasfer rimbors"
).split()
"""Beginnings of the same words in languages with Latin letters."""
PREFIXES = ("re", "un", "pre", "auto", "de", "out")
"""Beginnings after which a word still acts."""

SPEECH = frozenset("you your yours yourself please pls plz must should shall immediately urgent urgently asap".split())
"""Words with which a text speaks to its reader."""
FUNCTION_WORDS = frozenset(
    "a an the and or to of for with from that this these those is are was were be been it its in on at by as "
    "if then now not but will would can could has have had do does did i me we us they them he him she her "
    "who what when where why how so than too only also instead first next before after until all above "
    "previous prior system assistant prompt instruction instructions".split()
)
"""Words of which a sentence has several, and a name hardly any."""
MOST_WORDS, MOST_FUNCTION_WORDS, FEW_WORDS = 5, 1, 2
"""Words, and words of `FUNCTION_WORDS`, of one part of a path, or of a name: with more it is a sentence, unless it has
only a few words, as "how-to"."""
SECRETS = frozenset(
    "password passwords passwd passphrase secret secrets credential credentials creds apikey ssn cvv cvc "
    "htpasswd shadow sudoers rsa dsa keystore keychain otp".split()
)
"""Words in the names of things to which no text leads an agent."""

_LEET = (str.maketrans("0134578", "oleastb"), str.maketrans("0134578", "oieastb"))
"""Digits that stand for letters within a word; 1 is an l or an i."""
_WORD = re.compile(r"[^\W\d_]+|\d+")
_RUN = re.compile(r"[^\W_]+")
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,3}$")
_SEGMENT = re.compile(r"/|::")
_JOINTS = (2, 3, 4, 5)
"""Neighbouring words that are also read as one: "re_fund", "sEnD"."""
LONG = 6
"""Letters of the shortest word that is looked for within others."""
_SHORT = 4
"""Letters of the shortest word that is looked for across joints."""


def _forms(verb: str) -> Iterator[str]:
    """Yield a verb in its persons and tenses."""
    stem = verb[:-1] if verb[-1] == "e" else verb
    yield from (verb, f"{verb}s", f"{verb}es", f"{stem}ed", f"{stem}ing", f"{stem}{stem[-1]}ed", f"{stem}{stem[-1]}ing")
    if verb[-1] == "y":
        yield from (f"{verb[:-1]}ies", f"{verb[:-1]}ied")


_ALWAYS = frozenset([form for verb in VERBS for form in _forms(verb)]).union(OF_VERBS)
_BEFORE_A_WORD = frozenset([form for noun in NOUNS for form in _forms(noun) if form != f"{noun}s"])
_LONG = re.compile("|".join(sorted(form for form in _ALWAYS if len(form) >= LONG)))
_OBJECTS, _TONGUES = tuple(OBJECTS), tuple(OTHER_TONGUES)


@lru_cache(maxsize=4_096)  # the names of a run come back again and again
def acts(name: str, *, noun: bool = False) -> bool:
    """Return True if a name has a word that acts; a `noun` may have one of `NOUNS`, as "order" in "get_order"."""
    name = name[:LONGEST]
    if any(_has_verb(words) for words in _readings(name)):
        return True
    if noun:
        return False
    parts = _SEGMENT.split(_EXTENSION.sub("", name))
    return any(_begins_act(words) for part in parts for words in _readings(part))


def hides_act(name: str) -> bool:
    """Return True if a long word that acts is anywhere in a name, as in "xdelete"."""
    return _LONG.search("".join(words_of(name))) is not None


def words_of(name: str) -> list[str]:
    """Return the words of a name in any case style, and its numbers, folded."""
    return _WORD.findall(fold(_parted(name[:LONGEST])))


def _parted(name: str) -> str:
    """Return the name with a line between the words of its camel case."""
    parts, before = [], ""
    for char, after in zip(name, f"{name[1:]} "):
        if char.isupper() and (before.islower() or before.isdigit() or (before.isupper() and after.islower())):
            parts.append("_")
        parts.append(char)
        before = char
    return "".join(parts)


def _readings(name: str) -> Iterator[list[str]]:
    """Yield the words of a name as they may be read: by its case or without it, and with digits for letters."""
    yield words_of(name)
    plain = fold(name)
    yield _WORD.findall(plain)
    for text in (plain, fold(_parted(name))):
        runs = _RUN.findall(text)
        if any(not run.isalpha() and not run.isdigit() for run in runs):
            for table in _LEET:
                yield [run if run.isdigit() else run.translate(table) for run in runs]


def _has_verb(words: Sequence[str]) -> bool:
    return any(map(_is_verb, words)) or any(
        len(joined) >= _SHORT and joined in _ALWAYS
        for size in _JOINTS
        for at in range(len(words) - size + 1)
        if (joined := "".join(words[at : at + size]))
    )


def _begins_act(words: Sequence[str]) -> bool:
    return any(
        word in _BEFORE_A_WORD and after.isalpha() and after not in ATTRIBUTES for word, after in pairwise(words)
    )


def _is_verb(word: str) -> bool:
    if word in _ALWAYS or word.startswith(_TONGUES):
        return True
    if any(word.startswith(prefix) and word[len(prefix) :] in _ALWAYS for prefix in PREFIXES):
        return True
    return any(_is_joined(word[:at], word[at:]) for at in range(3, len(word) - 1))


def _is_joined(head: str, tail: str) -> bool:
    """Return True for a word that acts, and what it acts on, without a joint: "deleteall", "userdelete"."""
    if head in _ALWAYS and tail.startswith(_OBJECTS):
        return True
    return tail in _ALWAYS and len(tail) > 2 and (head in OBJECTS or head[:-1] in OBJECTS)


def speaks(name: str) -> bool:
    """Return True if a name is a sentence, speaks to its reader, or is that of a secret."""
    if not (SPEECH | SECRETS).isdisjoint(words_of(name)):
        return True
    functions = 0
    for segment in _SEGMENT.split(_parted(_EXTENSION.sub("", name[:LONGEST]))):
        words = [run for run in _RUN.findall(fold(segment)) if run.isalpha()]  # no words are in ids
        found = sum(word in FUNCTION_WORDS for word in words)
        functions += found
        if len(words) > MOST_WORDS or (found > MOST_FUNCTION_WORDS and len(words) > FEW_WORDS):
            return True
    return functions > 2 * MOST_FUNCTION_WORDS
