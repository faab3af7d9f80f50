"""Reads a page as a browser's parser does: its elements, their attributes and its texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "input", "br", "img"})


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self) -> list[Element]:
        return [self, *(found for child in self.children for found in child.all())]

    def find(self, tag: str, **wanted: str) -> list[Element]:
        """The elements of a tag with these attributes; `class_` is one of its classes."""
        return [
            one for one in self.all() if one.tag == tag and all(one.has(name, value) for name, value in wanted.items())
        ]

    def has(self, name: str, value: str) -> bool:
        if name == "class_":
            return value in self.attributes.get("class", "").split()
        return self.attributes.get(name) == value

    @property
    def words(self) -> str:
        """All text in the element, in one line."""
        return " ".join(" ".join(one.text for one in self.all()).split())


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), "an attribute twice"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a page has no comments")


def parsed(html: str) -> Element:
    """Return the root of a page. Fails if an element is closed that is not the open one."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert parser.open == [parser.root], f"<{parser.open[-1].tag}> is never closed"
    return parser.root
