"""What a text may name as not tried yet: members of lists in results, beside those that the agent used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from reasonblocks._monitors.features import features_of
from reasonblocks._monitors.forms import Form
from reasonblocks._monitors.listed import lists_in
from reasonblocks._monitors.untried import Alternatives, alternatives, gather
from reasonblocks.types import JSON, Step
from tests.core.monitors.conftest import act


def untried(steps: Sequence[Step], tool_roles: Mapping[str, str] | None = None) -> Alternatives:
    return with_form(steps, tool_roles)._replace(form=None, seen=-1, elsewhere=False, here=False)


def with_form(steps: Sequence[Step], tool_roles: Mapping[str, str] | None = None) -> Alternatives:
    memory: JSON = None
    for index, step in enumerate(steps):
        memory = gather(features_of(step, index), step, memory, tool_roles or {})
    return alternatives(memory, len(steps) - 1)


HALL, ATTIC = "You are in the hall. Doors: attic, cellar, pantry.", "You are in the attic. Doors: hall."
TO_ATTIC, TO_HALL = act("go", ATTIC, door="attic"), act("go", HALL, door="hall")
BACK_AND_FORTH = [act("look", HALL), TO_ATTIC, TO_HALL, TO_ATTIC, TO_HALL]
FILES = act("list_dir", "base.ini\nprod.ini\nports.yaml", path="conf")


def test_doors_that_were_not_taken_are_named() -> None:
    assert untried(BACK_AND_FORTH) == Alternatives(("cellar", "pantry"), newest=True)


def test_files_beside_one_that_was_read_are_named() -> None:
    read = act("read_file", "timeout = 3", path="conf/base.ini")
    assert untried([FILES, read, read]) == Alternatives(("prod.ini", "ports.yaml"), newest=False)


def test_a_list_from_which_nothing_was_taken_is_not_named() -> None:
    assert untried([FILES, act("read_file", "text", path="src/a.py")]) == Alternatives()


def test_a_list_that_the_agent_has_left_is_not_named() -> None:
    read = act("read_file", "timeout = 3", path="conf/base.ini")
    assert untried([FILES, read, *[act("run_tests", "3 passed", n=n) for n in range(4)]]) == Alternatives()


def test_what_was_an_argument_before_it_was_listed_counts_as_tried() -> None:
    steps = [act("read_file", "x", path="prod.ini"), FILES, act("read_file", "y", path="conf/base.ini")]
    assert untried(steps).names == ("ports.yaml",)


def test_the_last_listing_is_named_if_no_list_is_in_use() -> None:
    assert untried([FILES]) == Alternatives(("base.ini", "prod.ini", "ports.yaml"), newest=True)
    array = act("get_files", '["base.ini", "prod.ini"]', path="conf")
    assert untried([array]) == Alternatives(), "only a tool that lists or searches"
    assert untried([act("list_files", '["base.ini", "prod.ini"]')]).names == ("base.ini", "prod.ini")


def test_a_list_within_other_text_is_no_listing() -> None:
    assert untried([act("list_dir", "3 files:\n- base.ini\n- prod.ini\n- ports.yaml", path="conf")]) == Alternatives()


def test_a_list_in_use_comes_before_a_newer_listing() -> None:
    read = act("read_file", "timeout = 3", path="conf/base.ini")
    other = act("list_tables", '["one", "two"]')
    assert untried([FILES, read, other]) == Alternatives(("prod.ini", "ports.yaml"), newest=False)


NOTHING = "No results for 'm20'. Some terms of the index: adapter, faucet, wardrobe."


def test_what_a_search_in_vain_lists_is_named() -> None:
    terms = ("adapter", "faucet", "wardrobe")
    assert untried([act("search", NOTHING, query="m20")]) == Alternatives(terms, newest=True)
    later = [act("search", NOTHING, query="m20"), act("search", "No results for 'm20'.", query="m20")]
    assert untried(later) == Alternatives(terms, newest=False)
    tried = [*later, act("search", "No results for 'faucet'.", query="faucet")]
    assert untried(tried) == Alternatives(("adapter", "wardrobe"), newest=False)
    assert untried([*later, *[act("run_tests", "3 passed", n=n) for n in range(3)]]) == Alternatives()


def test_what_a_search_brought_is_not_what_one_in_vain_lists() -> None:
    assert untried([act("search", "Found 2 results for 'm20'. Terms: adapter, faucet.", query="m20")]) == Alternatives()


def test_the_call_that_took_a_member_is_the_form_of_the_others() -> None:
    assert with_form(BACK_AND_FORTH).form == Form("go", "door")
    read = act("read_file", "timeout = 3", path="conf/base.ini")
    assert with_form([FILES, read, read]).form == Form("read_file", "path", "conf/")
    shown = act("bash", "timeout = 3", command="cat conf/base.ini")
    listed = act("bash", "base.ini\nprod.ini\nports.yaml", command="ls conf")
    assert with_form([listed, shown]).form == Form("bash", "command", "cat conf/")


def test_a_search_in_vain_and_an_error_are_the_forms_of_what_they_list() -> None:
    assert with_form([act("search", NOTHING, query="m20")]).form == Form("search", "query")
    wrong = act("go", "Error: no door to 'cave' here. Doors: attic, cellar.", is_error=True, door="cave")
    assert with_form([wrong]).form == Form("go", "door")


@pytest.mark.parametrize(
    "took",
    [
        act("read_file", "text", path="base.ini", lines="1-9"),
        act("bash", "ok", command="python base.ini"),
        act("bash", "ok", command="exiftool base.ini"),
        act("query", "3", query="SELECT avg(n) FROM base.ini"),
        act("open", "text", line=3),
        act("read_file" + "_long" * 20, "text", path="base.ini"),
    ],
)
def test_a_call_that_is_more_than_a_look_at_one_member_is_no_form(took: Step) -> None:
    assert with_form([FILES, took]).form is None


def test_a_list_is_elsewhere_if_the_last_result_has_another_of_its_kind() -> None:
    cellar = act("go", "You are in the cellar. Doors: hall, vault.", door="cellar")
    vault = act("go", "You are in the vault. Doors: cellar.", door="vault")
    found = with_form([act("look", HALL), TO_ATTIC, TO_HALL, cellar, vault, cellar])
    assert (found.names, found.newest, found.seen, found.elsewhere) == (("pantry",), False, 2, True)
    read = act("read_file", "timeout = 3", path="conf/base.ini")
    found = with_form([FILES, read, read])
    assert (found.names, found.seen, found.elsewhere) == (("prod.ini", "ports.yaml"), 0, False)


def test_a_form_makes_a_call() -> None:
    assert Form("read_file", "path", "conf/").call("a.ini").arguments == {"path": "conf/a.ini"}


def test_at_most_three_are_named() -> None:
    listed = act("list_dir", "\n".join(f"part{n}.py" for n in range(8)), path=".")
    assert untried([listed, act("read_file", "x", path="part0.py")]).names == ("part1.py", "part2.py", "part3.py")


def test_of_a_long_list_none_is_named() -> None:
    listed = act("list_dir", "\n".join(f"part{n}.py" for n in range(40)), path=".")
    assert untried([listed, act("read_file", "x", path="part0.py")]) == Alternatives()


def test_the_rest_of_a_list_is_not_named_if_something_was_done_to_a_member() -> None:
    orders = act("find_orders", "O1001: total 12.30\nO1002: total 9.10\nO1003: total 3.10", customer="C-1")
    assert untried([orders, act("refund", "refused", order="O1001")]) == Alternatives()


def test_an_error_offers_what_is_valid() -> None:
    wrong = act("go", "Error: no door to 'cave' here. Doors: attic, cellar.", is_error=True, door="cave")
    assert untried([wrong]) == Alternatives(("attic", "cellar"), newest=True, offered=True)


def test_an_older_error_offers_nothing() -> None:
    wrong = act("go", "Error: no door to 'cave' here. Doors: attic, cellar.", is_error=True, door="cave")
    assert untried([wrong, act("wait", "You wait.", turns=1)]) == Alternatives()


@pytest.mark.parametrize("name", ["browse_web", "read_inbox", "read_channel_messages"])
def test_nothing_is_named_from_a_tool_of_other_peoples_text(name: str) -> None:
    listed = act(name, "Rooms: attic, cellar, pantry.", q=1)
    assert untried([listed, act("go", "dark", door="attic")]) == Alternatives()


def test_nothing_is_named_from_a_tool_that_the_caller_says_is_of_other_people() -> None:
    read = act("read_file", "timeout = 3", path="conf/base.ini")
    assert untried([FILES, read], {"list_dir": "web"}) == Alternatives()


def test_names_with_blanks_are_taken_from_tools_of_a_known_role_only() -> None:
    found = "Similar: ['Baking mix', 'General Mills', 'Jus-Rol']"
    named = {
        name: untried([act(name, found, q="x"), act("look_up", "", q="Baking mix")]).names for name in ("ask", "search")
    }
    assert named == {"ask": (), "search": ("General Mills", "Jus-Rol")}


def test_a_value_in_quotes_counts_as_tried() -> None:
    found = "Similar: ['Baking mix', 'General Mills', 'Jus-Rol']"
    steps = [act("search", found, query='"Baking mix"'), act("search", found, query="General Mills")]
    assert untried(steps).names == ("Jus-Rol",)


def lists(text: str, *, code: bool = False) -> list[list[str]]:
    return [members for _, members in lists_in(text, quoted=True, code=code)]


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("Doors: attic, cellar.", ["attic", "cellar"]),
        ("unknown tool x; the tools are find_orders, refund and help", []),
        ("unknown tool x; the tools are find_orders, refund, help", ["find_orders", "refund", "help"]),
        ("a.py\nb.py", ["a.py", "b.py"]),
        ("- a.py\n- b.py", ["a.py", "b.py"]),
        ("O1234: total 12.30\nO1299: total 1.10\nO1301: total 3.00", ["O1234", "O1299", "O1301"]),
        ("src/a.py:12:import\nsrc/b.py:3:import\nsrc/c.py:9:import", ["src/a.py", "src/b.py", "src/c.py"]),
        ("-rw-r--r-- 1 root root 12 Oct 24 a.py\n-rw-r--r-- 1 root root 12 Oct 24 b.py", ["a.py", "b.py"]),
        ("FAILED tests/a.py::test_x\nFAILED tests/b.py::test_y\nFAILED tests/c.py::test_z - assert 1",
         ["tests/a.py::test_x", "tests/b.py::test_y", "tests/c.py::test_z"]),
        ('["attic", "cellar"]', ["attic", "cellar"]),
        ("[('city',), ('country',)]", ["city", "country"]),
        ('[{"id": "u-17", "age": "3"}, {"id": "u-18", "age": "4"}]', ["u-17", "u-18"]),
    ],
)  # fmt: skip
def test_a_list_is_found_by_its_form(text: str, members: list[str]) -> None:
    assert lists(text) == ([members] if members else [])


@pytest.mark.parametrize(
    "text",
    [
        "In the morning, the man went out, and he saw a dog.",
        "def f(a, b, c):\n    return a, b, c",
        "date: 2022-01-01\nid: 17\nrecipient: me",
        "12\n13\n14",
        "see [    ]",
        "Note: yes, no.",
        "{'ok': true, 'total': 3.5}",
    ],
)
def test_prose_code_and_numbers_are_no_list(text: str) -> None:
    assert lists(text) == []


def test_what_looks_like_a_list_in_a_file_that_a_shell_shows_is_none() -> None:
    assert lists("alpha\nbeta\ngamma", code=True) == []
