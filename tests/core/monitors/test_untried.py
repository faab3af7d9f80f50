"""What a text may name as not tried yet: members of lists in results, beside those that the agent used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from reasonblocks.monitors.forms import Form
from reasonblocks.monitors.listed import lists_in
from reasonblocks.monitors.untried import Alternatives
from reasonblocks.types import JSON, Step, ToolCall, ToolResult
from tests.core.monitors.conftest import act
from tests.core.monitors.sighted import found
from tests.core.steps import acted


def untried(steps: Sequence[Step], tool_roles: Mapping[str, str] | None = None) -> Alternatives:
    return with_form(steps, tool_roles)._replace(form=None, seen=-1, elsewhere=False, here=False)


def with_form(steps: Sequence[Step], tool_roles: Mapping[str, str] | None = None) -> Alternatives:
    return found(steps, tool_roles or {})._replace(shown_by="")


HALL, ATTIC = "You are in the hall. Doors: attic, cellar, pantry.", "You are in the attic. Doors: hall."
TO_ATTIC, TO_HALL = act("go", ATTIC, door="attic"), act("go", HALL, door="hall")
BACK_AND_FORTH = [act("look", HALL), TO_ATTIC, TO_HALL, TO_ATTIC, TO_HALL]
FILES = act("list_dir", "base.ini\nprod.ini\nports.yaml", path="conf")
READ = [act("read_file", f"timeout = {n}", path=f"conf/{name}.ini") for n, name in enumerate(("base", "prod"))]


def test_doors_that_were_not_taken_are_named() -> None:
    assert untried(BACK_AND_FORTH) == Alternatives(("cellar", "pantry"), newest=True)


def test_files_beside_two_that_were_read_are_named() -> None:
    assert untried([FILES, *READ]) == Alternatives(("ports.yaml",), newest=False)


def test_one_member_is_not_enough_in_one_form() -> None:
    assert untried([FILES, READ[0], READ[0]]) == Alternatives()
    shown = act("show_file", "timeout = 4", path="conf/prod.ini")
    assert untried([FILES, READ[0], shown]) == Alternatives(), "another tool"
    other = act("read_file", "timeout = 4", file="conf/prod.ini")
    assert untried([FILES, READ[0], other]) == Alternatives(), "another argument"
    absolute = act("read_file", "timeout = 4", path="old/prod.ini")
    assert untried([FILES, READ[0], absolute]) == Alternatives(), "another folder"


def test_members_of_another_listing_are_not_of_the_same_folder() -> None:
    docs = act("list_dir", "intro.md\nsetup.md", path="docs")
    assert untried([FILES, *READ, docs]).names == ("ports.yaml",)


def test_members_of_lists_of_one_kind_count_together_as_the_doors_of_rooms_do() -> None:
    first = act("go", "You are in the hall. Doors: attic, cellar.", door="hall")
    second = act("go", "You are in the attic. Doors: hall.", door="attic")
    assert untried([first, second, first]).names == ("cellar",)


def test_a_list_from_which_nothing_was_taken_is_not_named() -> None:
    assert untried([FILES, act("read_file", "text", path="src/a.py")]) == Alternatives()


def test_a_list_that_the_agent_has_left_is_not_named() -> None:
    assert untried([FILES, *READ, *[act("run_tests", "3 passed", n=n) for n in range(4)]]) == Alternatives()


def test_what_was_an_argument_before_it_was_listed_counts_as_tried() -> None:
    listed = act("list_dir", "base.ini\nprod.ini\nports.yaml\nusers.ini", path="conf")
    assert untried([act("read_file", "x", path="users.ini"), listed, *READ]).names == ("ports.yaml",)


def test_a_newer_listing_is_not_named_while_nothing_of_it_was_used() -> None:
    other = act("list_tables", '["one", "two"]')
    assert untried([FILES, *READ, other]) == Alternatives(("ports.yaml",), newest=False)
    assert untried([other]) == Alternatives()


def test_the_call_that_took_members_is_the_form_of_the_others() -> None:
    assert with_form(BACK_AND_FORTH).form == Form("go", "door")
    assert with_form([FILES, *READ]).form == Form("read_file", "path", "conf/")
    listed = act("bash", "base.ini\nprod.ini\nports.yaml", command="ls conf")
    assert with_form([listed, *READ]).form == Form("read_file", "path", "conf/")


def test_the_same_other_arguments_belong_to_the_form() -> None:
    read = [act("read_file", "text", path=name, lines="1-9") for name in ("base.ini", "prod.ini")]
    assert with_form([FILES, *read]).form == Form("read_file", "path", given={"path": "", "lines": "1-9"})


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("read_file", {"path": "NAME", "other": "base.ini"}),
        ("bash", {"command": "python NAME"}),
        ("bash", {"command": "cat NAME"}),
        ("query", {"query": "SELECT avg(n) FROM NAME"}),
        ("read_file" + "_long" * 20, {"path": "NAME"}),
        ("read_file", {"path": "NAME", "note": "n" * 200}),
        ("read_file", {"path": "NAME", "n": 1.5}),
        ("read_file", {"path": "NAME", "customer_identification_number": "4"}),
        ("read_file", {"path": "NAME", "file key": "4"}),
        ("read_file", {"path": "NAME", "api_key": "sk-1234"}),
    ],
)
def test_a_call_that_is_more_than_a_look_at_one_member_or_cannot_be_written_is_no_form(
    tool: str, given: dict[str, JSON]
) -> None:
    took = []
    for name in ("base.ini", "prod.ini"):
        made = {key: value.replace("NAME", name) if isinstance(value, str) else value for key, value in given.items()}
        results = (ToolResult(call_id="c", name=tool, output="text"),)
        took.append(Step(tool_calls=(ToolCall(id="c", name=tool, arguments=made),), tool_results=results))
    assert with_form([FILES, *took]) == Alternatives()


def test_a_list_is_elsewhere_if_the_last_result_has_another_of_its_kind() -> None:
    cellar = act("go", "You are in the cellar. Doors: hall, vault.", door="cellar")
    vault = act("go", "You are in the vault. Doors: cellar.", door="vault")
    found = with_form([act("look", HALL), TO_ATTIC, TO_HALL, cellar, vault, cellar])
    assert (found.names, found.newest, found.seen, found.elsewhere) == (("pantry",), False, 2, True)
    found = with_form([FILES, *READ])
    assert (found.names, found.seen, found.elsewhere) == (("ports.yaml",), 0, False)


def test_a_form_makes_a_call() -> None:
    assert Form("read_file", "path", "conf/").call("a.ini").arguments == {"path": "conf/a.ini"}


def parts(count: int) -> list[Step]:
    listed = act("list_dir", "\n".join(f"part{n}.py" for n in range(count)), path=".")
    return [listed, *[act("read_file", "x", path=f"part{n}.py") for n in range(2)]]


def test_at_most_three_are_named() -> None:
    assert untried(parts(8)).names == ("part2.py", "part3.py", "part4.py")


def test_of_a_long_list_none_is_named() -> None:
    assert untried(parts(40)) == Alternatives()


def test_an_error_of_the_tool_is_one_of_its_results() -> None:
    wrong = act("go", "Error: no door to 'cave' here. Doors: attic, cellar, pantry.", is_error=True, door="cave")
    gone = [act("go", "You are in a room. Doors: hall.", door=door) for door in ("attic", "cellar")]
    assert untried([wrong, wrong]).names == ("attic", "cellar", "pantry")
    assert untried([wrong, *gone, wrong]) == Alternatives(("pantry",), newest=True)


def test_names_with_blanks_are_taken_from_tools_of_a_known_role_only() -> None:
    found = "Similar: ['Baking mix', 'General Mills', 'Jus-Rol']"
    named = {}
    for name in ("ponder", "search"):
        asked = [act(name, found, entry=entry) for entry in ("x", "Baking mix", "General Mills")]
        named[name] = untried(asked).names
    assert named == {"ponder": (), "search": ("Jus-Rol",)}


def test_a_value_in_quotes_counts_as_tried() -> None:
    found = "Similar: ['Baking mix', 'General Mills', 'Jus-Rol', 'Nestle']"
    asked = [act("search", found, query=query) for query in ('"Nestle"', "Baking mix", "General Mills")]
    assert untried(asked).names == ("Jus-Rol",)


def lists(text: str) -> list[list[str]]:
    return [members for _, members in lists_in(text, quoted=True)]


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
        "In the morning, the man went out, and he saw a dog.", "def f(a, b, c):\n    return a, b, c",
        "date: 2022-01-01\nid: 17\nrecipient: me", "12\n13\n14", "see [    ]", "Note: yes, no.",
        "{'ok': true, 'total': 3.5}",
    ],
)  # fmt: skip
def test_prose_code_and_numbers_are_no_list(text: str) -> None:
    assert lists(text) == []


def test_a_file_that_a_shell_shows_lists_nothing() -> None:
    shown = act("bash", "base.ini\nprod.ini\nports.yaml", command="cat notes.txt")
    assert untried([shown, *READ]) == Alternatives()


# --- what an error lists


GIVEN: Mapping[str, JSON] = {"customer": "C-4", "date": "17 Mar"}
FORMS = "Forms: 17-Mar-2026, 2026/03/17, 03/17/2026."


def refusal(text: str, name: str = "find_orders", given: Mapping[str, JSON] = GIVEN) -> Step:
    return acted(name, dict(given), f"Error: {text}", is_error=True)


def test_what_an_error_lists_for_the_argument_that_it_quotes_is_named() -> None:
    named = ("17-Mar-2026", "2026/03/17", "03/17/2026")
    first = refusal(f"cannot read the date '17 Mar'. {FORMS}")
    assert with_form([first]) == Alternatives(
        named, newest=True, form=Form("find_orders", "date", "", {"customer": "C-4", "date": ""}), seen=0
    )
    tried = act("find_orders", "Error: no such day", is_error=True, customer="C-4", date="2026/03/17")
    assert untried([first, tried, first]).names == ("17-Mar-2026", "03/17/2026")


@pytest.mark.parametrize(
    "step",
    [
        refusal(f"cannot read the date. {FORMS}"),
        refusal(f"cannot read '17 March'. {FORMS}"),
        refusal(f"'17 Mar' is no day of 'C-4'. {FORMS}"),
        refusal("unexpected '17 Mar'. Arguments: customer, date, shop."),
        refusal(f"cannot read the date '17 Mar'. {FORMS}", name="refund_orders"),
        refusal(f"cannot read the date '17 Mar'. {FORMS}", name="set_date"),
        refusal(f"cannot read the date '17 Mar'. {FORMS}", name="web_search"),
        refusal("cannot read the amount '5 x'. Amounts: five, six, seven.", given={"amount": "5 x"}),
        refusal("cannot read 'x' here. Names: alpha, beta, gamma.", name="find_name", given={"id": "x"}),
        act("find_orders", f"Nothing on '17 Mar'. {FORMS}", customer="C-4", date="17 Mar"),
    ],
    ids=lambda step: f"{step.tool_calls[0].name}: {step.tool_results[0].output[:40]}",
)
def test_a_look_alike_names_nothing(step: Step) -> None:
    assert untried([step]) == Alternatives()
