"""Text has a contrast of 4.5 to 1 with its background, in the light and in the dark theme."""

from __future__ import annotations

import re

import pytest

from reasonblocks_workbench.report import STYLESHEET, TEMPLATES

CSS = (TEMPLATES / STYLESHEET).read_text(encoding="utf-8")
PAIR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
COLOURS = {name: (light, dark) for name, light, dark in PAIR.findall(CSS)}
ON = {
    "paper": ("ink", "quiet", "link", "good", "bad", "warn", "fast", "normal", "slow", "skip", "idle"),
    "panel": ("ink", "quiet", "link", "good", "bad", "warn"),
    "code": ("ink", "quiet"),
    "good-back": ("good", "ink"),
    "bad-back": ("bad",),
    "warn-back": ("warn", "ink", "quiet"),
    "fast-back": ("fast",),
    "normal-back": ("normal",),
    "slow-back": ("slow",),
    "skip-back": ("skip",),
    "idle-back": ("idle",),
    "good": ("mark-ink",),
    "link": ("mark-ink",),
    "ink": ("mark-ink",),
    "bad": ("mark-ink",),
    "warn": ("mark-ink",),
}
"""Backgrounds, with the text colours that stand on them."""
GRAPHICS = ("level", "ring", "focus", "heat")
"""Colours of lines and areas that carry meaning: 3 to 1 is enough."""


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_black_on_white_is_the_highest_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_is_readable(theme: int) -> None:
    found = {
        (name, back): round(contrast(COLOURS[name][theme], COLOURS[back][theme]), 2)
        for back, names in ON.items()
        for name in names
    }
    assert {pair: ratio for pair, ratio in found.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_lines_and_marks_are_visible(theme: int) -> None:
    ratios = {name: round(contrast(COLOURS[name][theme], COLOURS["paper"][theme]), 2) for name in GRAPHICS}
    assert {name: ratio for name, ratio in ratios.items() if ratio < 3} == {}


def test_every_colour_of_a_text_is_checked() -> None:
    used = set(re.findall(r"(?<![\w-])color: var\(--([\w-]+)\)", CSS))
    assert used - {name for names in ON.values() for name in names} == set()


def test_every_colour_is_a_variable_of_both_themes() -> None:
    rest = PAIR.sub("", CSS)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?![\w-]*\s*\{)", rest) == []
