"""Pages: a search whose first page has an item of the right name that is not the one asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from ..environment import Call, Tool, ToolError, tool
from ._arguments import checked


class Item(NamedTuple):
    """An item of the catalogue. Only `open` shows its `size`."""

    id: str
    name: str
    colour: str
    size: str


class Wording(NamedTuple):
    """A search's results as shops word them: the line of an item, that of the page, a spelling, and an empty page."""

    item: str
    page: str
    spelling: str
    empty: str


BRANDS = {
    "Kestrel": "Kestrell",
    "Northwind": "Nordwind",
    "Greywood": "Graywood",
    "Sonata": "Sonatta",
    "Katrin": "Catrin",
    "Filippa": "Philippa",
    "Mayfair": "Mayfaire",
    "Jorvik": "Yorvik",
}
"""A brand, and another spelling of it."""
NOUNS = "lamp kettle chair mirror clock radio shelf basket".split()
COLOURS = "green white black red blue yellow grey brown".split()
SIZES = {"width": ("40 cm", "60 cm", "75 cm", "90 cm"), "weight": ("2 kg", "3 kg", "5 kg", "8 kg")}
WORDINGS = (
    Wording("{id}  {name}, {colour}", "Page {page} of {pages}.", "See also: {name}", "No results on page {page}."),
    Wording("[{id}] {name} ({colour})", "{count} results, page {page}/{pages}", "Related search: {name}", "No hits."),
    Wording("{id}: {name} | {colour}", "page={page} pages={pages} total={count}", "Also spelled: {name}", "items=[]"),
    Wording("- {name}, {colour} ({id})", "Showing page {page} of {pages}", "Did you mean {name}?", "Nothing found."),
)
PER_PAGE = 3
NEAR = (2, 3, 4)
"""Items that have the right name and colour, and another size: one of these numbers. The first page has one of them."""
OTHERS = 3
"""Items of the right name in other colours, at most: on the pages between, and again beside the right one."""


class Pages:
    """A search for an item. It is on a later page, or under another spelling, which the results show."""

    system = "You find items in a catalogue. Call exactly one tool each turn. Give the item's id with the tool answer."
    tools: Sequence[Tool] = (
        tool("search", "Search the catalogue", query="words of a name", page="number of the page: 1, 2, 3, 4, 5"),
        tool("open", "Show an item", id="id of the item"),
        tool("answer", "Give the item's id; ends the task", id="id of the item"),
    )
    max_steps = 14

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> str:
        """Write the catalogue of this seed."""
        rng = Random(f"pages {seed}")
        self._wording = rng.choice(WORDINGS)
        brand, noun = rng.choice([*BRANDS]), rng.choice(NOUNS)
        self._name, self._other = f"{brand} {noun}", f"{BRANDS[brand]} {noun}"
        self._colour, self._measure = rng.choice(COLOURS), rng.choice([*SIZES])
        self._size = rng.choice(SIZES[self._measure])
        self._respelled = rng.random() < 0.5
        self._items = {item.id: item for item in self._catalogue(rng)}
        self._shown: dict[str, Item] = {}
        self._opened: list[str] = []
        self._seen: dict[str, set[int]] = {}
        self._spelling = False
        self._given: str | None = None
        return (
            f"Find the {self._name} in {self._colour} with a {self._measure} of {self._size}: use search and open, "
            "then call answer with its id."
        )

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Search, open or answer. Raises `ToolError` for an id that does not exist and a page that is no number."""
        given = checked(name, arguments, self.tools)
        if name == "search":
            return self._search(given["query"], given["page"])
        if given["id"] not in self._items:
            raise ToolError(f"no item {given['id'][:40]!r}. The results of search have the ids.")
        if name == "answer":
            self._given = given["id"]
            return "The answer is taken."
        item = self._items[given["id"]]
        self._opened.append(item.id)
        return f"{item.id}\nname: {item.name}\ncolour: {item.colour}\n{self._measure}: {item.size}"

    @property
    def done(self) -> bool:
        """True after an answer."""
        return self._given is not None

    def success(self) -> bool:
        """Return True after the right answer."""
        return self._given is not None and self._is_right(self._items[self._given])

    def reopen(self) -> None:
        """Take the answer back."""
        self._given = None

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return the name and its words, the spelling and the pages that were shown, and the ids that were."""
        pages = max([len(self._pages(query)) for query in self._seen], default=1)
        found = {
            "search.query": [*self._queries(), *self._name.split()],
            "search.page": [str(page) for page in range(1, pages + 1)],
            "open.id": [*self._shown],
            "answer.id": [*self._shown],
        }
        return {key: values for key, values in found.items() if values}

    def reference(self) -> Call | None:
        """Answer with an opened item that is right; or open one that may be; or search the next page or spelling."""
        for found in self._opened:
            if self._is_right(self._items[found]):
                return Call("answer", {"id": found})
        for item in self._shown.values():
            if item.name in (self._name, self._other) and item.colour == self._colour and item.id not in self._opened:
                return Call("open", {"id": item.id})
        for query in self._queries():
            seen = self._seen.get(query.lower(), ())
            for page in range(1, len(self._pages(query)) + 1 if seen else 2):
                if page not in seen:
                    return Call("search", {"query": query, "page": str(page)})
        return None

    def _queries(self) -> list[str]:
        return [self._name, self._other] if self._spelling else [self._name]

    def _is_right(self, item: Item) -> bool:
        return item.name in (self._name, self._other) and (item.colour, item.size) == (self._colour, self._size)

    def _catalogue(self, rng: Random) -> list[Item]:
        """Return the items in the order of the results: a near one is on the first page, the right one is not."""
        ids = iter([f"{rng.choice('ABCDEFGH')}{number}" for number in rng.sample(range(1000, 10_000), 40)])
        colours, sizes = [colour for colour in COLOURS if colour != self._colour], SIZES[self._measure]
        wrong = [size for size in sizes if size != self._size]

        def items(name: str, count: int) -> list[Item]:
            return [Item(next(ids), name, rng.choice(colours), rng.choice(sizes)) for _ in range(count)]

        near = [Item(next(ids), self._name, self._colour, rng.choice(wrong)) for _ in range(rng.choice(NEAR))]
        right = Item(next(ids), self._other if self._respelled else self._name, self._colour, self._size)
        groups = [
            [near[0], *items(self._name, PER_PAGE - 1)],
            [*near[1:], *items(self._name, rng.randint(1, OTHERS))],
            [right, *items(right.name, rng.randint(1, OTHERS))],
        ]
        brand, noun = self._name.split()
        names = [f"{brand} {other}" for other in rng.sample([other for other in NOUNS if other != noun], 3)]
        names += [f"{other} {noun}" for other in rng.sample([other for other in BRANDS if other != brand], 3)]
        found = [item for group in groups for item in rng.sample(group, len(group))]
        return [*found, *[item for name in names for item in items(name, 1)]]

    def _words(self, query: str) -> list[str]:
        """Return the words of a query that a name has; the search takes no notice of the others."""
        known = {word for item in self._items.values() for word in item.name.lower().split()}
        return [word for word in query.lower().split() if word in known]

    def _pages(self, query: str) -> list[list[Item]]:
        words = {*self._words(query)}
        found = [item for item in self._items.values() if words and words <= {*item.name.lower().split()}]
        return [found[at : at + PER_PAGE] for at in range(0, len(found), PER_PAGE)]

    def _search(self, query: str, page: str) -> str:
        if not page.isdecimal() or int(page) < 1:
            raise ToolError(f"page has to be a number from 1, not {page[:40]!r}.")
        key, pages, number = " ".join(self._words(query)), self._pages(query), int(page)
        if number > len(pages):
            return self._wording.empty.format(page=number)
        found = pages[number - 1]
        self._seen.setdefault(key, set()).add(number)
        self._shown |= {item.id: item for item in found}
        lines = [self._wording.item.format(**item._asdict()) for item in found]
        lines.append(self._wording.page.format(page=number, pages=len(pages), count=sum(map(len, pages))))
        if self._respelled and key == self._name.lower():
            self._spelling = True
            lines.append(self._wording.spelling.format(name=self._other))
        return "\n".join(lines)
