"""Small programs, their tests, and lines that break them. Each loop is over a sequence, so that none runs for ever."""

from __future__ import annotations

from typing import NamedTuple

from ._sandbox import Test


class Program(NamedTuple):
    """A file that passes its tests. `wrong` are a line's number, from 1, and a text of it that fails at least one."""

    source: str
    tests: tuple[Test, ...]
    wrong: tuple[tuple[int, str], ...]


PROGRAMS = (
    Program(
        """\
def median(values):
    values = sorted(values)
    n = len(values)
    if n % 2 == 1:
        return values[n // 2]
    return (values[n // 2 - 1] + values[n // 2]) / 2""",
        (("median([3, 1, 2])", "2"), ("median([4, 1, 3, 2])", "2.5"), ("median([5])", "5")),
        (
            (2, "    values = list(values)"),
            (2, "    values = sorted(values)[1:]"),
            (5, "        return values[n // 2 - 1]"),
            (5, "        return values[-1]"),
            (6, "    return values[n // 2]"),
            (6, "    return (values[n // 2 - 1] + values[n // 2]) // 2"),
        ),
    ),
    Program(
        """\
def is_prime(n):
    if n < 2:
        return False
    for i in range(2, n):
        if n % i == 0:
            return False
    return True""",
        (("is_prime(1)", "False"), ("is_prime(2)", "True"), ("is_prime(4)", "False"), ("is_prime(13)", "True")),
        (
            (2, "    if n < 1:"),
            (2, "    if n < 3:"),
            (4, "    for i in range(1, n):"),
            (4, "    for i in range(2, n + 1):"),
            (4, "    for i in range(3, n):"),
            (5, "        if n % i == 1:"),
            (5, "        if n // i == 0:"),
        ),
    ),
    Program(
        """\
def count_words(text):
    counts = {}
    for word in text.lower().split():
        word = word.strip('.,?')
        counts[word] = counts.get(word, 0) + 1
    return counts""",
        (
            ("count_words('A a')", "{'a': 2}"),
            ("count_words('x? x, y.')", "{'x': 2, 'y': 1}"),
            ("count_words('')", "{}"),
        ),
        (
            (3, "    for word in text.split():"),
            (3, "    for word in text.upper().split():"),
            (3, "    for word in text.lower():"),
            (4, "        word = word.strip('.')"),
            (4, "        word = word.strip('?')"),
            (5, "        counts[word] = counts.get(word, 1) + 1"),
            (5, "        counts[word] = 1"),
        ),
    ),
    Program(
        """\
def roman(n):
    out = ''
    for value, mark in [(10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')]:
        out += mark * (n // value)
        n = n % value
    return out""",
        (("roman(3)", "'III'"), ("roman(4)", "'IV'"), ("roman(9)", "'IX'"), ("roman(14)", "'XIV'")),
        (
            (3, "    for value, mark in [(10, 'X'), (5, 'V'), (4, 'IV'), (1, 'I')]:"),
            (3, "    for value, mark in [(10, 'X'), (9, 'IX'), (5, 'V'), (1, 'I')]:"),
            (4, "        out += mark * (n % value)"),
            (4, "        out = mark * (n // value)"),
            (5, "        n = n // value"),
            (5, "        n = n - value"),
        ),
    ),
    Program(
        """\
def flatten(items):
    out = []
    for item in items:
        if isinstance(item, list):
            out.extend(flatten(item))
        else:
            out.append(item)
    return out""",
        (("flatten([1, [2, [3]]])", "[1, 2, 3]"), ("flatten([[], 4])", "[4]"), ("flatten([[1], 2])", "[1, 2]")),
        (
            (4, "        if isinstance(item, tuple):"),
            (4, "        if not isinstance(item, list):"),
            (5, "            out.extend(item)"),
            (5, "            out.append(flatten(item))"),
            (5, "            out = flatten(item)"),
            (7, "            out.append([item])"),
            (7, "            out = [item]"),
        ),
    ),
    Program(
        """\
def leap(year):
    if year % 400 == 0:
        return True
    if year % 100 == 0:
        return False
    return year % 4 == 0""",
        (("leap(2000)", "True"), ("leap(1900)", "False"), ("leap(2024)", "True"), ("leap(2023)", "False")),
        (
            (2, "    if year % 40 == 1:"),
            (2, "    if year % 100 == 0:"),
            (4, "    if year % 1000 == 0:"),
            (4, "    if year % 2 == 0:"),
            (6, "    return year % 4 == 1"),
            (6, "    return year % 2 == 1"),
        ),
    ),
    Program(
        """\
def slug(text):
    words = text.lower().split()
    words = [word.strip('.,') for word in words]
    return '-'.join(words)""",
        (("slug('Big Cat')", "'big-cat'"), ("slug('one  two')", "'one-two'"), ("slug('a, b.')", "'a-b'")),
        (
            (2, "    words = text.split()"),
            (2, "    words = text.lower().split(' ')"),
            (2, "    words = text.lower().split('-')"),
            (3, "    words = [word.strip('.') for word in words]"),
            (3, "    words = [word.strip('-') for word in words]"),
            (4, "    return '_'.join(words)"),
            (4, "    return ''.join(words)"),
        ),
    ),
    Program(
        """\
def clamp(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x""",
        (("clamp(5, 1, 3)", "3"), ("clamp(-2, 0, 9)", "0"), ("clamp(4, 1, 8)", "4")),
        (
            (2, "    if x > low:"),
            (2, "    if x < high:"),
            (3, "        return high"),
            (3, "        return x"),
            (4, "    if x < high:"),
            (5, "        return low"),
            (5, "        return x"),
            (6, "    return low"),
        ),
    ),
)
