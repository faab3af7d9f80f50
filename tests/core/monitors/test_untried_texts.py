"""How a text says what was not tried yet."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import settings
from hypothesis import strategies as st

from reasonblocks.monitors.memory import table
from reasonblocks.monitors.suite import is_told
from reasonblocks.monitors.untried import alternatives, gather
from reasonblocks.types import Account, Step, ToolCall, ToolResult
from tests.core.monitors.conftest import act, play, requests
from tests.core.monitors.sighted import said, sightings

HALL = act("go", "You are in the hall. Doors: attic, cellar, pantry.", door="hall")
ATTIC = act("go", "You are in the attic. Doors: hall, loft.", door="attic")
LOFT = act("go", "You are in the loft. Doors: attic, roof.", door="loft")
ROOF = act("go", "You are in the roof. Doors: loft.", door="roof")
CELLAR = act("go", "You are in the cellar. Doors: hall.", door="cellar")
VAULT = act("go", "You are in the vault. Doors: cellar.", door="vault")


def test_untried_members_are_calls_in_the_form_that_the_agent_used() -> None:
    assert said([HALL, CELLAR, HALL, CELLAR, HALL]) == 'Not tried yet: go(door="attic"), go(door="pantry").'


def test_a_room_with_one_door_shows_no_list_and_the_way_to_an_untried_door_is_said() -> None:
    way = [HALL, ATTIC, HALL, ATTIC, LOFT, ROOF, LOFT, ATTIC, HALL]
    assert said([*way, CELLAR]) == 'Not tried yet: go(door="hall") and then go(door="pantry").'
    assert said([HALL, CELLAR, HALL, CELLAR]) == 'Not tried yet: go(door="hall") and then go(door="attic").'
    assert said(way) == 'Not tried yet: go(door="cellar"), go(door="pantry").'


@settings(deadline=None)
@hypothesis_given(st.lists(st.sampled_from([HALL, ATTIC, LOFT, ROOF, CELLAR, VAULT]), min_size=6, max_size=30))
def test_the_way_to_an_untried_door_begins_in_the_room_where_the_agent_is(run: list[Step]) -> None:
    way = re.search(r'"(\w+)"\) and then ', said(run))
    assert way is None or re.search(rf"Doors: .*\b{way[1]}\b", run[-1].tool_results[0].output)


def test_from_a_room_that_does_not_lead_there_no_way_is_said() -> None:
    walk = [HALL, ATTIC, LOFT, ATTIC, LOFT]
    assert said([*walk, ROOF]) == ""
    assert said([*walk, ATTIC]) == 'Not tried yet: go(door="loft") and then go(door="roof").'


def test_of_two_rooms_with_untried_doors_the_one_that_can_be_reached_from_here_is_said() -> None:
    kitchen = act("go", "You are in the kitchen. Doors: loft, mill, yard.", door="Kitchen")
    loft = act("go", "You are in the loft. Doors: kitchen, mill, zoo.", door="loft")
    mill = act("go", "You are in the mill. Doors: kitchen.", door="mill")
    assert said([kitchen, loft, mill] * 2) == 'Not tried yet: go(door="Kitchen") and then go(door="yard").'


@pytest.mark.parametrize(
    ("cycle", "told_at"),
    [
        ([HALL, CELLAR], 6),  # due at the fourth dead step of five, in the cellar
        ([CELLAR, HALL], 5),  # due in the hall
        ([HALL, CELLAR, VAULT], 6),
        ([CELLAR, HALL, VAULT], 7),  # due in the cellar
        ([CELLAR, VAULT, HALL], 8),  # likewise, and the vault comes before the hall
    ],
)
def test_the_text_of_a_cycle_waits_for_the_place_where_the_untried_call_can_be_made(
    cycle: list[Step], told_at: int
) -> None:
    found = play(cycle * 5)
    told = [at for at, one in enumerate(found) if one.inject]
    assert (told[0], found[told[0]].hint) == (told_at, 'Not tried yet: go(door="attic"), go(door="pantry").')


def test_the_text_of_errors_in_turn_waits_for_the_one_that_lists_what_may_be_given() -> None:
    listing = "Error: cannot read the date '17 Mar'. Forms: 17-Mar-2026, 2026/03/17, 03/17/2026."
    one = act("find_orders", listing, is_error=True, date="17 Mar")
    other = act("find_orders", "Error: this shop uses another form", is_error=True, date="2026/03/17")
    found = play([one, other] * 4)
    assert [at for at, each in enumerate(found) if each.inject] == [6]
    assert found[6].hint == 'Not tried yet: find_orders(date="17-Mar-2026"), find_orders(date="03/17/2026").'


def test_what_an_error_lists_is_not_named_once_a_call_was_accepted() -> None:
    listing = "Error: cannot read the date '17 Mar'. Forms: 17-Mar-2026, 2026/03/17, 03/17/2026."
    refused = act("find_orders", listing, is_error=True, date="17 Mar")
    accepted = act("find_orders", "O1344: chair, total 178.74", date="2026/03/17")
    assert (
        said([refused, refused]) == 'Not tried yet: find_orders(date="17-Mar-2026"), find_orders(date="2026/03/17"), '
        'find_orders(date="03/17/2026").'
    )
    assert said([refused, accepted, accepted, accepted]) == ""


def test_a_call_that_failed_is_not_the_one_to_go_back_to() -> None:
    wrong = act("go", "Error: no door to 'roof' here. Doors: attic, cellar, pantry.", is_error=True, door="roof")
    assert "roof" not in said([HALL, ATTIC, HALL, CELLAR, HALL, wrong, CELLAR])


@settings(deadline=None)
@hypothesis_given(st.lists(st.sampled_from([HALL, ATTIC, LOFT, ROOF, CELLAR, VAULT]), min_size=6, max_size=30))
def test_a_text_waits_two_steps_at_most_and_only_while_the_agent_goes_round(run: list[Step]) -> None:
    waited = 0
    for request, found in zip(requests(run), play(run), strict=True):
        at = request.index
        waits = is_told(request.account, request.patience) and not found.inject
        waited = waited + 1 if waits else 0
        assert waited <= 2
        assert not waits or any(
            run[at + 1 - 2 * size : at + 1 - size] == run[at + 1 - size : at + 1] for size in (2, 3)
        )


def test_a_tool_that_does_not_lead_away_needs_no_way() -> None:
    conf = act("list_dir", "base.ini\nprod.ini\nports.yaml", path="conf")
    docs = act("list_dir", "intro.md\nsetup.md", path="docs")
    read = [act("read_file", "timeout = 3", path=f"conf/{name}.ini") for name in ("base", "prod")]
    assert said([docs, conf, *read]) == 'Not tried yet: read_file(path="conf/ports.yaml").'


def test_a_call_that_would_be_shortened_is_not_written() -> None:
    tool = "read_the_text_of_one_file_in_a_folder_of_the_configuration"
    names = [f"settings-{part}-of-the-configuration.ini" for part in ("base", "test", "live")]
    listed = act("list_dir", "\n".join(names), path="conf")
    assert said([listed, *[act(tool, "timeout = 3", path=f"conf/{name}") for name in names[:2]]]) == ""


def test_a_search_works_from_anywhere() -> None:
    vain = "No results for 'sofa'."
    terms = [f"{vain} Some terms of the index: {names}." for names in ("torch, handset, couch", "couch, cooker")]
    asked = [act("search", vain, query=word) for word in ("torch", "handset")]
    steps = [act("search", terms[0], query="sofa"), *asked, act("search", terms[1], query="sofa")]
    assert said(steps) == 'Not tried yet: search(query="couch"), search(query="cooker").'
    again = [*steps, act("search", vain, query="couch"), act("search", vain, query="sofa")]
    assert said(again) == 'Not tried yet: search(query="cooker").'


def room(name: str, exits: str, way: str) -> Step:
    return act("go", f"-= {name} =- You are in the {name}. Exits: {exits}. Here: lamp, rug.", direction=way)


ATRIUM, BARN, CAVE = "north, south, east", "south, east", "west, east"


def test_directions_that_were_not_taken_after_the_same_result_are_named() -> None:
    way = [
        room("Atrium", ATRIUM, "south"), room("Barn", BARN, "north"), room("Atrium", ATRIUM, "south"),
        room("Cave", CAVE, "east"), room("Atrium", ATRIUM, "west"), room("Barn", BARN, "north"),
        room("Atrium", ATRIUM, "south"),
    ]  # fmt: skip
    assert said(way) == 'Not tried yet after this result: go(direction="south").'
    assert said([*way, room("Barn", BARN, "north")]) == 'Not tried yet after this result: go(direction="east").'


def test_what_was_taken_after_each_result_is_left_to_the_advice() -> None:
    back_and_forth = [room("Attic", "north, south", "south"), room("Cellar", "north, south", "north")] * 2
    assert said([*back_and_forth, room("Attic", "north, south", "south")]).endswith('go(direction="south").')
    assert said([*back_and_forth, *[room("Attic", "north, south", way) for way in ("south", "south", "north")]]) == ""


def test_a_search_is_not_asked_for_again_after_another_result() -> None:
    vain = [act("search", "Terms of the index: couch, cooker.", query=word) for word in ("couch", "cooker", "couch")]
    other = act("search", "Terms of the index: couch, cooker. And no more.", query="couch")
    assert said([*vain, other]) == ""


@settings(deadline=None, max_examples=60)
@hypothesis_given(ways=st.lists(st.sampled_from(["north", "south", "east"]), min_size=2, max_size=24))
def test_what_was_not_tried_after_a_result_was_not(ways: list[str]) -> None:
    """A walk in a ring of three rooms: north and east lead on, south back."""
    rooms = ["Atrium", "Barn", "Cave"]
    at, steps, taken = 0, [room(rooms[0], "north, south, east", "north")], set()
    for way in ways:
        taken.add((at, way))
        at = (at + (-1 if way == "south" else 1)) % len(rooms)
        steps.append(room(rooms[at], "north, south, east", way))
    text = said(steps)
    if "after this result" in text:
        named = re.findall(r'direction="(\w+)"', text)
        assert named
        assert not taken & {(at, way) for way in named}


ATRIUM_SEEN = [room("Atrium", ATRIUM, way) for way in ("north", "south", "east", "north")]
"""Each direction was taken somewhere; after the Atrium's text: south, east and north."""


def parallel(*ways: str) -> Step:
    calls = [ToolCall(id=way, name="go", arguments={"direction": way}) for way in ways]
    shown = f"You are in the Atrium. Exits: {ATRIUM}. Here: lamp, rug."
    return Step(tool_calls=tuple(calls), tool_results=(ToolResult(call_id=ways[-1], name="go", output=shown),))


def test_every_call_of_a_step_was_tried_after_the_result_before() -> None:
    first = [room("Barn", BARN, way) for way in ("north", "south", "east")]
    assert said([*first, parallel("north"), parallel("north", "south"), parallel("east"), parallel("east")]) == ""


def test_a_step_without_a_result_or_with_another_one_does_not_hide_what_was_tried_before() -> None:
    silent = Step(tool_calls=(ToolCall(id="c", name="go", arguments={"direction": "south"}),))
    assert said([*ATRIUM_SEEN, silent]) == ""
    lamp = act("examine", "A brass lamp.", thing="lamp")
    first = [room("Barn", BARN, way) for way in ("north", "south", "east")]
    looked = [room("Atrium", ATRIUM, "north"), lamp, *[room("Atrium", ATRIUM, way) for way in ("south", "east")]]
    assert said([*first, *looked, room("Atrium", ATRIUM, "north")]) == ""


def test_a_memory_that_began_without_it_says_nothing_of_what_was_tried_after_a_result() -> None:
    memory = sightings(ATRIUM_SEEN[:3])
    assert isinstance(memory, dict)
    older = {key: value for key, value in memory.items() if key != "after"}
    step = ATRIUM_SEEN[3]
    memory = gather(step, 3, Account(), older, {})
    assert "after" not in table(memory)
    assert not alternatives(memory, 3).names


def test_what_was_tried_and_failed_is_not_named_again() -> None:
    offer = "Error: no such region 'eu'. Regions: eu-west, us-east."
    tried = [
        act("connect", offer, is_error=True, region="eu"),
        act("connect", "Error: the region is down.", is_error=True, region="eu-west"),
        act("connect", "Error: the region is full.", is_error=True, region="us-east"),
    ]
    assert said([*tried, tried[0], tried[0]]) == ""


def test_names_with_dots_and_quotes_were_tried_as_they_are_written() -> None:
    exits = "n.w., s.e., up"
    assert said([room("Cave", exits, way) for way in ("n.w.", "s.e.", "up") * 2]) == ""
    rooms = json.dumps(["the dogs'", "the cats'", "the cows"])
    opened = [act("open_room", "A room.", room=name) for name in json.loads(rooms)]
    assert said([act("list_rooms", rooms), *opened, act("list_rooms", rooms)]) == ""


def test_numbered_folders_are_paths_and_dates_are_not() -> None:
    offer = "Error: no such folder './runs/0019'. Folders: logs/0012, logs/0013, logs/0014."
    wrong = act("read_file", offer, is_error=True, path="./logs/0019")
    read = [act("read_file", "text", path=f"logs/{name}") for name in ("0012", "0013")]
    assert said([wrong, *read, wrong]) == 'Not tried yet: read_file(path="logs/0014").'


def test_what_is_within_a_nested_argument_was_tried() -> None:
    call = ToolCall(id="c", name="go", arguments={"direction": {"to": "south"}})
    nested = Step(tool_calls=(call,), tool_results=room("Atrium", ATRIUM, "south").tool_results)
    assert "south" not in said([room("Atrium", ATRIUM, "north"), nested, room("Atrium", ATRIUM, "north")])


def test_the_longest_member_is_the_one_that_was_taken() -> None:
    exits = "east, northeast, south, west"
    text = said([room("Plain", exits, way) for way in ("west", "northeast", "west", "northeast")])
    assert text == 'Not tried yet: go(direction="east"), go(direction="south").'


def test_a_long_value_is_not_kept() -> None:
    offer = "Error: no such region. Regions: eu-west, us-east."
    wrong = act("connect", offer, is_error=True, region="x" * 200_000)
    assert len(json.dumps(sightings([wrong]))) < 1_000


def test_a_way_that_would_be_shortened_is_not_written() -> None:
    hall = act("go", "You are in the hall. Doors: attic, cellar, pantry.", door="hall", note="n" * 120)
    cellar = act("go", "You are in the cellar. Doors: hall.", door="cellar")
    assert " and then " not in said([hall, cellar, hall, cellar])
