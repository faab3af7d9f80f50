"""Does the task itself want something done again, and how often?"""

from __future__ import annotations

import re
from functools import lru_cache

from .features import TASK_HEAD

__all__ = ["asked_for"]

SEVERAL = 10
"""What "several times" allows."""
MOST = 50

_COUNT = re.compile(
    r"\b(?:(?:(\d{1,3})|(two)|(three)|(four)|(five)|(six)|(seven)|(eight)|(nine)|(ten)|(a dozen)|(several|many|a few))"
    r"[ -](?:more )?(?:times(?! (?:as|more|less|larger|smaller|the)\b)|runs|rolls|samples|calls|tries|attempts"
    r"|repetitions|measurements)|(repeatedly|again and again))\b",
    re.IGNORECASE,
)
_NUMBERS = (0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, SEVERAL, SEVERAL)
"""What the groups of `_COUNT` after the first mean, by their number."""


@lru_cache(maxsize=64)
def asked_for(task: str) -> int:
    """How often the task itself wants something done again, 0 where it does not say so."""
    most = 0
    for found in _COUNT.finditer(task[:TASK_HEAD]):
        at = found.lastindex or 1
        most = max(most, min(MOST, int(found[1])) if at == 1 else _NUMBERS[at - 1])
    return most
