"""How a text says what was not tried yet."""

from __future__ import annotations

from collections.abc import Sequence

from reasonblocks._gates import untried_sentence
from reasonblocks._monitors.wording import composed
from reasonblocks.types import Step
from tests.core.monitors.conftest import act
from tests.core.monitors.test_texts import recalled

HALL = act("go", "You are in the hall. Doors: attic, cellar, pantry.", door="hall")
ATTIC = act("go", "You are in the attic. Doors: hall, loft.", door="attic")
LOFT = act("go", "You are in the loft. Doors: attic, roof.", door="loft")
ROOF = act("go", "You are in the roof. Doors: loft.", door="roof")
CELLAR = act("go", "You are in the cellar. Doors: hall.", door="cellar")


def said(steps: Sequence[Step]) -> str:
    text = composed("Evidence.", "Advice.", recalled(steps))
    assert text.startswith("Evidence.")
    return untried_sentence(text)


def test_untried_members_are_calls_in_the_form_that_the_agent_used() -> None:
    assert said([HALL, CELLAR, HALL, CELLAR, HALL]) == 'Not tried yet: go(door="attic"), go(door="pantry").'


def test_a_room_with_one_door_shows_no_list_and_the_way_to_an_untried_door_is_said() -> None:
    way = [HALL, ATTIC, HALL, ATTIC, LOFT, ROOF, LOFT, ATTIC, HALL]
    assert said([*way, CELLAR]) == 'Not tried yet: go(door="hall") and then go(door="pantry").'
    assert said(way) == 'Not tried yet: go(door="cellar"), go(door="pantry").'


def test_a_tool_that_does_not_lead_away_needs_no_way() -> None:
    conf = act("list_dir", "base.ini\nprod.ini\nports.yaml", path="conf")
    docs = act("list_dir", "intro.md\nsetup.md", path="docs")
    read = act("read_file", "timeout = 3", path="conf/base.ini")
    text = said([docs, conf, read, read])
    assert text == 'Not tried yet: read_file(path="conf/prod.ini"), read_file(path="conf/ports.yaml").'


def test_a_call_that_would_be_shortened_is_not_written() -> None:
    tool = "read_the_text_of_one_file_in_a_folder_of_the_configuration"
    listed = act("list_dir", "settings-of-the-base.ini\nsettings-of-the-production.ini", path="conf")
    read = act(tool, "timeout = 3", path="conf/settings-of-the-base.ini")
    text = said([listed, read, read])
    assert text == "Named in an earlier result and not tried yet: settings-of-the-production.ini."
