"""Reword: a search in an index that has words of its own, not those of the question."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ..environment import Call, Tool, ToolError, tool
from ._arguments import checked, listed

WORDS = {
    "charger": "adapter",
    "sofa": "couch",
    "fridge": "refrigerator",
    "flashlight": "torch",
    "stove": "cooker",
    "curtains": "drapes",
    "phone": "handset",
    "tap": "faucet",
    "rug": "carpet",
    "closet": "wardrobe",
}
"""A word of questions, and the index term of the same thing."""
QUESTIONS = {
    "How many months of warranty has": "warranty {} months",
    "How many days does delivery take for": "delivery {} days",
    "How many days of returns are there for": "returns {} days",
}
NUMBERS = {"warranty": ("12", "18", "24", "36"), "delivery": ("3", "5", "7", "9"), "returns": ("14", "21", "28", "30")}
TERMS = 8
HINTS = 4
"""Index terms that an empty search names; every second one names none."""
MODELS = ("M20", "P35", "T14", "X80")
CLASSES = ("class-a", "class-b", "class-c", "class-d")


class Reword:
    """A question about a product. From a term of the index the way leads to the product, its class, and the answer."""

    system = (
        "You answer questions with a search. Call exactly one tool each turn. Give the answer with the tool answer."
    )
    tools: Sequence[Tool] = (
        tool("search", "Search the index", query="a word of the index"),
        tool("answer", "Give the final answer; ends the task", value="the number"),
    )
    max_steps = 22

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> str:
        """Write the index of this seed."""
        rng = Random(f"reword {seed}")
        self._word, self._model = rng.choice([*WORDS]), rng.choice(MODELS)
        right = WORDS[self._word]
        others = [term for term in WORDS.values() if term != right]
        self._terms = rng.sample([right, *rng.sample(others, TERMS - 1)], TERMS)
        question = rng.choice([*QUESTIONS])
        self._pattern = QUESTIONS[question].format(r"(\d+)")
        classes = {name: _class(rng) for name in CLASSES}
        self._class = rng.choice(CLASSES)
        found = re.search(self._pattern, classes[self._class])
        self._answer = found[1] if found else ""
        self._pages = dict(classes)
        for term in self._terms:
            self._pages |= self._entries(term, right, rng)
        self._shown: list[str] = []
        self._searched: list[str] = []
        self._empty = 0
        self._given: str | None = None
        return f"{question} the {self._word} {self._model}? Find out with search, then call answer with the number."

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Search, or give the answer. Raises `ToolError` for an answer that no result has."""
        value = next(iter(checked(name, arguments, self.tools).values()))
        if name == "answer":
            pages = " ".join([self._pages.get(key, "") for key in self._searched])
            if not re.search(rf"\b{re.escape(value)}\b", pages):
                raise ToolError(f"no result has {value[:40]!r}. Look it up before you answer.")
            self._given = value
            return "The answer is taken."
        return self._search(value.lower())

    @property
    def done(self) -> bool:
        """True after an answer."""
        return self._given is not None

    def success(self) -> bool:
        """Return True after the right answer."""
        return self._given == self._answer

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return the words of the question, the terms and names that were shown, and the numbers of classes."""
        pages = " ".join([self._pages[key] for key in self._searched if key in CLASSES])
        numbers = [*dict.fromkeys(re.findall(r"\d+", pages))]
        found = {"search.query": [*self._own(), *self._shown], "answer.value": numbers}
        return {key: values for key, values in found.items() if values}

    def reference(self) -> Call | None:
        """Follow the product asked for; or else search the next term that was shown, or the question's other words."""
        product = [name for name in self._shown if name.endswith(f"-{self._model.lower()}")]
        classes = [name for name in self._shown if name in CLASSES]
        for name in classes:
            if name in self._searched and (found := re.search(self._pattern, self._pages[name])):
                return Call("answer", {"value": found[1]})
        terms = [name for name in self._shown if name in self._terms]
        for query in [*classes, *product, *terms, *self._own()]:
            if query.lower() not in self._searched:
                return Call("search", {"query": query})
        return None

    def _own(self) -> list[str]:
        """Return the queries that the question itself suggests."""
        return [self._word, f"{self._word} {self._model}", self._model]

    def _entries(self, term: str, right: str, rng: Random) -> dict[str, str]:
        """Return the page of a term and those of its products. Only the right term has the model asked for."""
        others = rng.sample([model for model in MODELS if model != self._model], 2)
        models = rng.sample([self._model, others[0]], 2) if term == right else others
        names = [f"{term}-{model.lower()}" for model in models]
        pages = {term: f"Entries: {listed(names)}."}
        for name, model in zip(names, models):
            its = self._class if model == self._model else rng.choice(CLASSES)
            pages[name] = f"{name} weighs {rng.randint(2, 90)}00 g. Its terms are those of {its}."
        return pages

    def _search(self, query: str) -> str:
        key = max([key for key in self._pages if key in query], key=len, default=None)
        self._searched.append(key or query)
        if key is None:
            return self._nothing(query)
        self._show([name for name in self._pages if name in self._pages[key] and name != key])
        return self._pages[key]

    def _nothing(self, query: str) -> str:
        """Return the result of an empty search: every second one names some terms of the index, the others none."""
        turn, names_terms = self._empty // 2, self._empty % 2 == 0
        self._empty += 1
        if not names_terms:
            return f"No results for {query[:40]!r}."
        first = turn * HINTS % TERMS
        hints = self._terms[first : first + HINTS]
        self._show(hints)
        return f"No results for {query[:40]!r}. Some terms of the index: {listed(hints)}."

    def _show(self, names: Sequence[str]) -> None:
        self._shown += [name for name in names if name not in self._shown]


def _class(rng: Random) -> str:
    numbers = {key: rng.choice(values) for key, values in NUMBERS.items()}
    return ", ".join([text.format(numbers[text.split()[0]]) for text in QUESTIONS.values()])
