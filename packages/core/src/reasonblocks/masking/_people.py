"""Masks people: names in any script that has capitals, fields that name someone, e-mail, home folders and accounts.

It uses no library: those that find names in running text are heavy, because each brings a language model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from . import ACCOUNTS, HOME, MASK, unless_common

NO_NAMES = frozenset(
    # first words of sentences and headings
    "a about above access according account action actions add additional address after again all also although "
    "always an and another answer any api are argument arguments as ask assert at available back based because "
    "before below best between both build but by call can cannot change check checking class clear click close "
    "code column command commands compare complete config confirm consider contact context continue correct could "
    "create current data database date day dear default define delete description did directory do does done "
    "double each either else empty ensure enter error errors even every example exception execute expected failed "
    "failure false field fields file files final finally find finding first fix flight flights folder following "
    "for found friday from full function further get getting give given go good group had has have he hello help "
    "hence her here hi his home how however i id if import in index input insert inspect install instead into "
    "invalid is issue it item its key kind last later latest let like line list load loading local log look "
    "looking main make many may maybe message method missing module more most move must my name names need never "
    "new next no none not note nothing now null number object ok okay old on once one only open option or order "
    "orders other our out output over page parameter password path perhaps permission please possible previous "
    "print problem process proceed project provide query question read reading ready reason received regards "
    "remove replace reply report request required response result results retry return returned review right row "
    "run running same save search second secret see select send server service set settings she should show "
    "similarly simply since so some sorry source start state status step steps still stop string such sure system "
    "table take task tell test tests than thank thanks that the their them then there these they thing this those "
    "though thought three through thus time timeout title to token too tool total traceback true try trying two "
    "type unable under unexpected unfortunately unknown until update upon usage use user users using valid value "
    "values verify version view wait warning was we welcome well were what when where whether which while who why "
    "will with within without world would write writing wrong das der die ein eine yes yet you your monday "
    "tuesday wednesday thursday saturday sunday "
    # products and related words
    "python java javascript typescript rust golang kotlin ruby perl scala swift docker kubernetes linux windows "
    "ubuntu debian fedora android chrome firefox safari edge google microsoft amazon apple azure aws visual "
    "studio stack overflow github gitlab git jira slack zoom excel word outlook office teams drive cloud flask "
    "django react angular vue node redis postgres mysql mongo sqlite oracle kafka spark hadoop airflow jenkins "
    "terraform ansible nginx apache pytest numpy pandas pytorch tensorflow keras jupyter notebook anaconda conda "
    "pip npm yarn maven gradle json yaml xml html css sql http https rest graphql openai anthropic claude gemini "
    "chatgpt gpt llama wikipedia youtube twitter facebook linkedin instagram reddit macbook iphone ipad intel "
    "nvidia tesla unicode ascii utf bash shell powershell terminal internet explorer web browser machine learning "
    "deep neural network markdown readme license public private general big bearer basic authorization content "
    "accept agent mozilla "
    # places of two words
    "york san francisco los angeles united states kingdom hong kong zealand las vegas north south east west "
    "america europe asia africa australia london paris berlin germany france spain italy china japan india "
    "canada".split()
)
"""Words, in lower case, that delimit a name: "When Ann Lee" contains two words of a name."""

IN_CAPITALS = frozenset(
    "abort absent accept action active alter am analyze api app args arn ascii asc assert auto avg aws backup "
    "base be begin bios blob body break buffer build bug byte cache case cast cd change char cert ci cli clone "
    "cluster cmd code collate column commit conflict connect connection constraint copy core count cpu cr crlf "
    "cross csv current cursor danger database db dead debug declare delimiter deny denied desc describe dev diff "
    "dir disk distinct div dns drop dtd dump duplicate ec end engine enum env eof err escape except exec exists "
    "exit explain export extract fail fatal fetch fixme float foreign format full ftp get gmt gpu grant group "
    "having head heap high host html http https ide ignore inner int integer interval intersect io ip is join "
    "jpeg json jwt kb kill lan left len length level like limit link linux live lock long low lower mac macro "
    "mail max mb md memory merge min minus mode mysql nan natural net no node not notnull null num ok oom "
    "operation os outer parse partition patch pattern pdf php pid ping pk png port post pragma pre primary prod "
    "protocol proxy put ram rename references release refused regex reject rest restrict rollback rom root rpc "
    "rsa sdk schema script section sequence session sftp sha show signal size smtp socket sql ssd ssh ssl stderr "
    "stdin stdout stop sudo sum summary support syntax tar tcp temp temporary text todo tls todo top trace "
    "transaction trigger truncate tty txt udp ui undefined union unique unit unsigned update upper uri url us usa "
    "utc utf uuid vacuum values varchar varying vm void vpn where window work xml yaml zip zone violation lost "
    "killed aborted overflow success passed skipped warnings info important caution attention stack".split()
)
"""Added to `NO_NAMES`, in lower case: words of SQL, of protocols and of tool output."""


def _letters(kind: str) -> str:
    """Return the upper or lower case letters of every script, as the ranges of a character class."""
    cased = str.isupper if kind == "upper" else str.islower
    found = [code for code in range(0x1E944) if cased(chr(code)) and chr(code).isalpha()]
    ranges = [[code for _, code in run] for _, run in groupby(enumerate(found), lambda pair: pair[1] - pair[0])]
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in ranges)


_UP, _LOW = f"[{_letters('upper')}]", f"[{_letters('lower')}\u0300-\u036f]"
_PART = (
    rf"(?:{_UP}['’])?(?:Mc|Mac|De|Di|Du|Le|La|Fitz|Van|Von)?{_UP}{_LOW}+(?:['’]{_UP}{_LOW}+|['’]{_LOW}{{2,}})?"
    rf"(?:[-‐‑](?:{_UP}?{_LOW}+))*"
)
_SMALL = r"(?:(?:van|von|der|den|de|la|las|los|del|della|di|da|dos|das|bin|bint|ibn|al|el|zu|zur|ter|ten|af|av)\s)"
_GAP = rf"[ \u00a0]+(?:{_UP}\.[ ]?){{0,3}}{_SMALL}{{0,2}}"
_NAME = re.compile(rf"(?<!\w){_PART}(?:{_GAP}{_PART})+(?!\w)")
_CAPITALS = re.compile(
    rf"(?<!\w){_UP}['’]?{_UP}+(?:[-'’]{_UP}+)*(?: (?:{_UP}\. )?{_UP}['’]?{_UP}+(?:[-'’]{_UP}+)*)+(?!\w)"
)
MAX_CAPITALS = 4
"""The most words in capitals that may be a name; more of them are a sentence."""
_INITIALS = re.compile(
    rf"(?<!\w)(?:(?<=by )|(?<=from )|(?<=and )|(?<=with )|(?<=to "
    rf")|(?<=for )|(?<=cc ))(?:{_UP}\.[ ]?){{1,3}}{_PART}(?!\w)|"
    rf"(?<!\w)(?:{_UP}\.[ ]?){{2,3}}{_PART}(?!\w)"
)
_IRISH = re.compile(rf"(?<!\w){_UP}['’]{_UP}{_LOW}+(?!\w)")
_TITLED = re.compile(
    rf"(?<!\w)(?P<title>(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Professor|Sir|Herr|Frau|Señora?|Monsieur|Madame|Mme)\.?\s)"
    rf"(?P<name>(?:{_UP}\.[ ]?){{0,3}}{_SMALL}{{0,2}}{_PART}(?:{_GAP}{_PART})*)(?!\w)"
)
_CALLED = re.compile(
    r"(?<!\w)(?P<head>(?i:(?:name is|name's|called|named|i am|i'm|"
    r"call me|dear|hi|hello|hey|regards,?|sincerely,?|signed by|"
    rf"signed|thank you,|thanks,|written by|assigned to|on behalf of),?\s))(?P<name>{_PART}(?:{_GAP}{_PART})*)(?!\w)"
)
_MY_NAME = re.compile(
    rf"(?<!\w)((?i:(?:my|his|her|their)(?: (?:full|first|last|user))? ?name is:? ))([^\W\d_][\w'’-]*(?: {_PART})*)"
)
_MAILED = re.compile(
    rf"(?:\"[^\"\n<>]{{1,60}}\"|(?<!\w){_UP}[\w'’.-]{{0,40}}(?: "
    rf"{_SMALL}{{0,2}}{_UP}[\w'’.-]{{0,40}}){{0,3}})(?=\s*<[^<>\s@]*@?[^<>\s]*[@#][^<>\s]*>|\s*<#>)"
)
_GIT = re.compile(
    r"(?im)^([ \t>+*-]*(?:author|committer|co-authored-by|"
    r"signed-off-by|reviewed-by|reported-by|tested-by|acked-by|merged-by|"
    r"approved-by|suggested-by|maintainer)(?:\s*\([^)]*\))?:[ \t]*)([^\s<>#][^<>\n]{0,60}?)(?=\s*(?:<[^>\n]*>|$))"
)
_GIT_INLINE = re.compile(r"(?i)(\b(?:author|committer|[a-z]+-by):[ \t]*)[^\s<>#\"'][^<>\n\"':]{0,60}?(?=\s*<)")
_BLAME = re.compile(r"(?<!\S)(\^?[0-9a-f]{7,40}[^\n(]*\()([^\W\d_][^()\d\n]{0,40}?)(?=\s+\d{4}-\d\d-\d\d)")
_FIELDS = (
    r"(?:(?:[\w.-]{0,40}[_.-])?(?:user_?name|user|login|author|owner|committer|maintainer|assignee|reporter|reviewer|creator|"
    r"created_?by|updated_?by|assigned_?to|member|employee|owned_?by|uid)|uname|whoami)"
)
_FIELD = re.compile(
    rf"(?i)(?<![\w.-])(?P<head>(?:--?)?{_FIELDS}(?:[=]|:[ \t]*|[ ]*=[ "
    rf"]*))(?P<name>[^\s\"'`,;&|()\[\]{{}}<>:#=]+)(?P<rest>[^\n,;&\"']*)"
)
_OPTION = re.compile(
    r"(?P<head>(?<!\S)--(?:user(?:name)?|login|author|owner|assignee|"
    r"reviewer)[ =]|\buser\.name[ =]+|\b(?:mysql\w*|docker login|"
    r"podman login|psql|sudo)\b[^\n|;&]{0,60}?\s-[uU][ "
    r"]?)(?P<quote>\\{0,8}[\"'])?(?P<name>(?(quote)[^\"'\\\n]+|[^\s\"'\\-][^\s\"'\\]*))"
)
_BIBLIOGRAPHY = re.compile(r"(?i)(\b(?:author|editor)\s*=\s*\{)[^{}\n]{1,200}")
_PERSONAL = (
    rf"(?:\w{{0,30}}(?:first|last|full|user|middle|display|real|nick|customer|passenger|guest|sender|recipient|contact|account|holder)"
    rf"[_ -]?names?|names?|surname|e?-?mail|phone\w*|mobile|"
    rf"address[_\d]*\w?|street|city|state|province|country|zip\w*|postal\w*|"
    rf"dob|birth\w*|iban|ssn|passport\w*|{_FIELDS})"
)
_QUOTED = re.compile(
    rf"(?i)(?P<head>(?P<q>\\{{0,8}}[\"']){_PERSONAL}(?P=q)\s*:\s*|(?<![\w.-]){_FIELDS}\s*=\s*)(?P<quote>\\{{0,8}}[\"'])(?P<name>(?:(?!(?P=quote))\\*[^\\\n]){{0,400}})"
)
_NAME_KEY = re.compile(
    r"(?i)\\{0,8}[\"']?(?:first|last|full|middle|display|sur|"
    r"nick)_?name\\{0,8}[\"']?\s*[:=]\s*\\{0,8}[\"']([^\W\d_][\w' ’-]{1,40})\\{0,8}[\"']"
)


def known_names(text: str) -> Iterable[str]:
    """Yield the words that the text shows to be a person's names; they are then masked everywhere."""
    found: list[str] = _NAME_KEY.findall(text)
    found += [match["name"] for match in HOME.finditer(text) if match["head"] != "~"]
    found += [name for _, name in _MY_NAME.findall(text)] if "ame is" in text else []
    for name in found:
        for word in re.split(r"[\s.]+", name):
            if len(word) > 1 and word.lower() not in NO_NAMES and word.lower() not in ACCOUNTS and word != MASK:
                yield word


def without_names(text: str) -> str:
    """Mask the names of people, as far as capitals, titles and fields reveal them."""
    text = _MAILED.sub(MASK, _BLAME.sub(r"\1#", text))
    text = _GIT_INLINE.sub(r"\1#", _GIT.sub(_masked_author, text))
    text = _BIBLIOGRAPHY.sub(r"\1#", text)
    text = _OPTION.sub(lambda match: f"{match['head']}{match['quote'] or ''}{unless_common(match['name'])}", text)
    text = _QUOTED.sub(_masked_quoted, text)
    text = _FIELD.sub(_masked_field, text)
    text = _MY_NAME.sub(lambda match: match[0] if match[2].split()[0].lower() in NO_NAMES else match[1] + MASK, text)
    text = _TITLED.sub(lambda match: match[0] if _common(match["name"]) else match["title"] + MASK, text)
    text = _CALLED.sub(
        lambda match: match[0] if _common(match["name"]) else match["head"] + _cut(match["name"], NO_NAMES, 1), text
    )
    text = _INITIALS.sub(lambda match: match[0] if _common(match[0].rpartition(" ")[2]) else MASK, text)
    text = _NAME.sub(lambda match: _cut(match[0], NO_NAMES, 2), text)
    return _CAPITALS.sub(_masked_capitals, _IRISH.sub(MASK, text))


def _common(name: str) -> bool:
    return name.split()[0].lower() in NO_NAMES


def _masked_capitals(found: re.Match[str]) -> str:
    if len(found[0].split()) > MAX_CAPITALS:
        return found[0]
    return _cut(found[0], NO_NAMES | IN_CAPITALS, 2)


def _cut(name: str, common: frozenset[str], least: int) -> str:
    """Replace each sequence of at least `least` words that are not common by "#"."""
    rows = groupby(name.split(), lambda word: word.lower() in common)
    parts = [
        words if common_words or len(words) < least else [MASK] for common_words, row in rows if (words := list(row))
    ]
    return " ".join(word for words in parts for word in words)


def _masked_author(found: re.Match[str]) -> str:
    name = found[2]
    if len(name.split()) > 1 and name.islower() and "<" not in found.string[found.end() : found.end() + 3]:
        return found[0]
    return found[0] if _common(name) or name.lower() in ACCOUNTS else found[1] + MASK


def _masked_quoted(found: re.Match[str]) -> str:
    name = found["name"]
    return found[0] if not name or name.lower() in ACCOUNTS else f"{found['head']}{found['quote']}{MASK}"


def _masked_field(found: re.Match[str]) -> str:
    """Mask a field of one word; within a sentence, only capitalised words that are not common."""
    name, rest = found["name"], found["rest"]
    bare = name.rstrip(".!?")
    if (
        bare.lower() in ACCOUNTS
        or bare.lower() in NO_NAMES
        or re.match(r"(?:self|request|os|settings|config|current)[._]|[$%<]", bare)
    ):
        return found[0]
    if ":" in found["head"] and rest.strip() and not bare[:1].isupper():
        return found[0]
    return f"{found['head']}{MASK}{name[len(bare) :]}{rest}"
