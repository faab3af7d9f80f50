"""The worlds that others wrote: the same results each time, a way to win, and errors that name the remedy."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from random import Random
from typing import Any

import pytest
from _outcome.environment import Call, Closing, Environment, Limited, Solvable, ToolError, names
from _outcome.tasks import _science, _textworld
from _outcome.tasks._map import Map
from _outcome.tasks._recipe import Recipe
from _outcome.tasks._science import NoJava
from _outcome.tasks._textworld import LONGEST, NotInstalled, clipped, shortened
from _outcome.tasks.scienceworld_lab import Science, science
from _outcome.tasks.textworld_games import Coins, Cooking, coins, cooking

World = Coins | Cooking | Science

FACTORIES: dict[str, Callable[[], World]] = {"coins": coins, "cooking": cooking, "science": science}

# --- without the packages


def test_a_missing_package_is_named_with_its_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("textworld", "py4j", "py4j.java_gateway", "scienceworld.constants"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotInstalled, match="pip install textworld"):
        coins().reset(1)
    with pytest.raises(NotInstalled, match="pip install scienceworld"):
        _science._simulator.__wrapped__()


def test_missing_java_is_named_with_its_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scienceworld")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoJava, match="apt-get install"):
        _science._simulator.__wrapped__()


@pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES)
def test_a_world_is_an_environment_with_choices_a_policy_and_an_end(make: Callable[[], World]) -> None:
    world: Environment = make()
    assert isinstance(world, Limited)
    assert isinstance(world, Solvable)
    assert isinstance(world, Closing)
    assert 24 <= world.max_steps <= 30
    with pytest.raises(RuntimeError, match=r"call reset\(seed\) first"):
        world.call("look", {})
    world.close()


SCREEN = """-= Study =-
You arrive in a study. An usual one.



There is an unguarded exit to the east. There is an exit to the south. Don't worry, it is unguarded. \
You need an unguarded exit? You should try going west. There is an open plain door leading north.

There is a coin on the floor.


>                                                                 -= Study =-0/2"""


END = "You eat the meal.\n\n\n     *** You lost! ***\n\nYou scored 4.\n\nWould you like to RESTART, or QUIT?\n> x"
READ = "You read:\n\nIngredients:\n  red onion\n  salt\n\nDirections:\n  dice the red onion\n  prepare meal\n\n> x"
SHORT = "-= Study =- You arrive in a study. An usual one. There is an open plain door leading north."


@pytest.mark.parametrize(
    ("screen", "short"),
    [
        (SCREEN, f"{SHORT} There is a coin on the floor."),
        (END, "You eat the meal. *** You lost! *** You scored 4."),
        (READ, "Ingredients: red onion, salt. Directions: dice the red onion, prepare meal."),
    ],
    ids=["what is there", "an end without its question", "a recipe with its lines apart"],
)
def test_a_screen_is_shortened_to_what_is_there(screen: str, short: str) -> None:
    assert shortened(screen) == short


def test_a_long_text_is_clipped_and_the_lists_are_kept() -> None:
    text = clipped("word " * 200, "Exits: east.")
    assert len(text) == LONGEST
    assert text.endswith("... Exits: east.")
    assert clipped("A room.", "Exits: east.") == "A room. Exits: east."


def test_the_map_leads_to_the_nearest_room_not_seen() -> None:
    plan = Map()
    plan.show("hall", ["east", "north"])
    plan.link("hall", "east", "den")
    plan.show("den", ["west"])
    plan.link("den", "west", "hall")
    assert plan.untried("den") == "west"
    assert plan.untried("hall") == "north"
    assert plan.route("den", "hall") == "west"
    plan.link("hall", "north", "attic")
    plan.show("attic", [])
    assert plan.untried("hall") is None
    assert plan.route("den", "attic") == "west"
    assert plan.route("den", "cellar") is None


BOOK = "Ingredients:\n  red onion\n\nDirections:\n  dice the red onion\n  fry the red onion\n  prepare meal\n"


@pytest.mark.parametrize(
    ("commands", "wanted"),
    [
        (["go east", "take red onion from fridge"], "take red onion from fridge"),
        (["take red hot pepper"], None),
        (["drop red onion", "take knife from table", "prepare meal"], "take knife from table"),
        (["drop red onion", "dice red onion with knife", "slice red onion with knife"], "dice red onion with knife"),
        (["cook red onion with oven", "cook red onion with stove", "drop red onion"], "cook red onion with stove"),
        (["drop red onion", "prepare meal"], None),
        (["eat meal", "prepare meal"], "eat meal"),
    ],
)
def test_the_recipe_is_followed_where_it_can_be(commands: Sequence[str], wanted: str | None) -> None:
    recipe = Recipe()
    assert recipe.next(["examine cookbook", "take red onion"]) == "examine cookbook"
    recipe.read(BOOK)
    assert recipe.next(commands) == wanted


def test_food_is_not_cooked_twice() -> None:
    recipe = Recipe()
    recipe.read(BOOK)
    recipe.did("cook red onion with stove")
    assert recipe.next(["cook red onion with stove", "drop red onion", "prepare meal"]) == "prepare meal"


# --- with them: ./dev outcome


@pytest.fixture(scope="module", params=["coins", "cooking", "science"])
def make(request: pytest.FixtureRequest) -> Callable[[], World]:
    """The factory of a world whose package is installed."""
    pytest.importorskip("scienceworld" if request.param == "science" else "textworld")
    if request.param == "science" and not shutil.which("java"):
        pytest.skip("ScienceWorld needs java")
    return FACTORIES[request.param]


@pytest.fixture
def world(make: Callable[[], World]) -> Iterator[World]:
    """A world at the beginning of the task of seed 1."""
    with closing(make()) as made:
        made.reset(1)
        yield made


def turn(world: World, call: Call) -> str:
    try:
        return world.call(*call)
    except ToolError as exc:
        return f"Error: {exc}"


def test_the_reference_wins_and_its_calls_win_again_elsewhere(make: Callable[[], World]) -> None:
    with closing(make()) as one, closing(make()) as two:
        shown, calls = [one.reset(1)], list[Call]()
        while not one.done and (call := one.reference()):
            calls.append(call)
            shown.append(turn(one, call))
        assert one.success()
        assert len(calls) <= one.max_steps
        assert all(len(text) <= LONGEST for text in shown[1:])
        again = [two.reset(1)]
        two.choices()
        for call in calls:
            assert not two.success()
            again.append(turn(two, call))
        assert again == shown
        assert two.success()


def test_worlds_played_in_turns_do_not_disturb_each_other(make: Callable[[], World]) -> None:
    with closing(make()) as one, closing(make()) as two:
        alone = [one.reset(1), *(turn(one, Call("look", {})) for _ in range(6)), one.choices()]
        first, other = one.reset(1), two.reset(1)
        looks: list[Any] = []
        for _ in range(6):
            looks.append(turn(one, Call("look", {})))
            call = two.reference()
            assert call
            turn(two, call)
        assert [first, *looks, one.choices()] == alone
        assert other == first


def test_every_choice_of_a_place_can_be_made(make: Callable[[], World]) -> None:
    with closing(make()) as world:
        world.reset(1)
        (key,) = [key for key in world.choices() if key.startswith("go.")]
        places = world.choices()[key]
        assert places
        for place in places:
            world.reset(1)
            assert "Exits: " in world.call("go", {key.removeprefix("go."): place})


def test_a_call_that_cannot_be_made_names_what_can(world: World) -> None:
    key = next(key for key in world.choices() if key.startswith("go."))
    with pytest.raises(ToolError, match=rf"(?s)moon.*{world.choices()[key][0]}"):
        world.call("go", {key.removeprefix("go."): "moon"})
    with pytest.raises(ToolError, match=r"unknown tool fly; the tools are go,"):
        world.call("fly", {})
    with pytest.raises(ToolError):
        world.call("go", {})
    assert not world.done


def test_the_choices_belong_to_the_tools(world: World) -> None:
    tools = {item["function"]["name"]: item["function"]["parameters"]["required"] for item in world.tools}
    assert all(key.partition(".")[2] in tools[key.partition(".")[0]] for key in world.choices())
    assert all(values for values in world.choices().values())
    assert [*tools] == names(world.tools)


@pytest.mark.skipif(not shutil.which("java"), reason="ScienceWorld needs java")
def test_a_wrong_thing_loses_scienceworlds_task() -> None:
    pytest.importorskip("scienceworld")
    with closing(science()) as world:
        assert "find a(n) plant" in world.reset(0)
        world.call("focus", {"thing": "air"})
        assert world.done
        assert not world.success()


@pytest.mark.skipif(not shutil.which("java"), reason="ScienceWorld needs java")
def test_scienceworlds_own_way_wins() -> None:
    pytest.importorskip("scienceworld")
    world = _science.World("find-plant", 1, own_way=True)
    for command in world.own_way:
        world.type(command)
    assert world.score == 100
    assert world.completed


def test_textworlds_own_way_wins() -> None:
    pytest.importorskip("textworld")
    with closing(_textworld.Played("coins", Coins().settings(Random("coins 1")), 1)) as game:
        for command in game.own_way:
            assert not game.won
            game.type(command)
        assert game.won


def test_a_game_that_cannot_be_made_gives_the_generators_reason() -> None:
    pytest.importorskip("textworld")
    with pytest.raises(RuntimeError, match=r"no game 'coins' of seed 1: .*\[1-300\]"):
        _textworld.Played("coins", {"level": 900}, 1)
