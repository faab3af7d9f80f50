"""Orders: a refund through an API that wants a date in one of several forms and a reason of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ..environment import Call, Tool, ToolError, names, tool
from ._arguments import checked, listed

MONTHS = "January February March April May June July August September October November December".split()
ITEMS = "lamp kettle chair mirror clock radio carpet shelf".split()
REASONS = {
    "it arrived broken": "DAMAGED",
    "it came too late": "LATE",
    "it is not what was ordered": "WRONG_ITEM",
    "it is not needed any more": "UNWANTED",
}
FORMS = (
    "{year}-{month:02}-{day:02}",
    "{month:02}/{day:02}/{year}",
    "{day}-{name:.3}-{year}",
    "{year}/{month:02}/{day:02}",
)
EXAMPLE = {"year": 2025, "month": 12, "day": 31, "name": "December"}


class Orders:
    """A refund. Errors list the forms of dates and the reasons that exist, of which one is right."""

    system = "You are a support agent with tools. Call exactly one tool each turn. When the refund is made, call done."
    tools: Sequence[Tool] = (
        tool("find_orders", "Find the orders of a customer on a day", customer="customer id", date="the day"),
        tool("refund", "Refund an order", order="order id", amount="the order's total", reason="reason of the refund"),
        tool("help", "Show how a tool wants its arguments", tool="name of the tool"),
        tool("done", "End the task"),
    )
    max_steps = 22

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> str:
        """Take the orders of this seed."""
        rng = Random(f"orders {seed}")
        date: dict[str, Any] = {"year": 2026, "month": (month := rng.randint(1, 12)), "day": rng.randint(13, 28)}
        date["name"] = MONTHS[month - 1]
        self._customer = f"C-{rng.randint(100, 999)}"
        self._day = f"{date['day']} {date['name']} {date['year']}"
        forms = rng.sample(FORMS, len(FORMS))
        self._dates = [form.format_map(date) for form in forms]
        right = rng.randrange(len(forms))
        self._date, self._example = self._dates[right], forms[right].format_map(EXAMPLE)
        self._item, *others = rng.sample(ITEMS, 3)
        ids = [f"O{number}" for number in rng.sample(range(1000, 10_000), 3)]
        totals = [f"{rng.randint(10, 200)}.{rng.randint(10, 99)}" for _ in ids]
        self._orders = dict(zip(ids, zip([self._item, *others], totals)))
        self._order = ids[0]
        self._complaint = rng.choice([*REASONS])
        self._reasons = rng.sample([*REASONS.values()], len(REASONS))
        self._seen: set[str] = set()
        self._tried: list[str] = []
        self._refunded = self._ended = False
        return (
            f"Customer {self._customer} ordered a {self._item} on {self._day} and says that {self._complaint}. "
            "Refund this order: call find_orders, then refund, then done."
        )

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Use the shop's API. Raises `ToolError` for arguments that it does not take; it says what is valid."""
        given = checked(name, arguments, self.tools)
        if name == "find_orders":
            return self._find(given["customer"], given["date"])
        if name == "refund":
            return self._refund(given["order"], given["amount"], given["reason"])
        if name == "help":
            return self._help(given["tool"])
        self._ended = True
        return "The task has ended."

    @property
    def done(self) -> bool:
        """True after `done`."""
        return self._ended

    def success(self) -> bool:
        """Return True once the right order is refunded for the right reason."""
        return self._refunded

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return the values that the task, results and errors named."""
        orders = [*self._listing()] if "orders" in self._seen else []
        found = {
            "find_orders.customer": [self._customer],
            "find_orders.date": [self._day, *self._shown_dates()],
            "refund.order": orders,
            "refund.amount": [self._orders[order][1] for order in orders],
            "refund.reason": [self._complaint, *(self._reasons if "reasons" in self._seen else ())],
            "help.tool": names(self.tools),
        }
        return {key: values for key, values in found.items() if values}

    def reference(self) -> Call | None:
        """Try the day as the task has it and then each form that was shown; with the reasons likewise."""
        if self._refunded:
            return Call("done", {})
        if "orders" not in self._seen:
            date = self._untried([self._day, *self._shown_dates()])
            return Call("find_orders", {"customer": self._customer, "date": date}) if date else None
        reason = self._untried([self._complaint, *(self._reasons if "reasons" in self._seen else ())])
        amount = self._orders[self._order][1]
        return Call("refund", {"order": self._order, "amount": amount, "reason": reason}) if reason else None

    def _untried(self, values: Sequence[str]) -> str | None:
        return next((value for value in values if value not in self._tried), None)

    def _shown_dates(self) -> list[str]:
        return self._dates if "dates" in self._seen else []

    def _listing(self) -> list[str]:
        return sorted(self._orders)

    def _find(self, customer: str, date: str) -> str:
        if customer != self._customer:
            raise ToolError(f"no customer {customer!r}. The customer of this task is {self._customer}.")
        self._tried.append(date)
        if date in self._dates and date != self._date:
            raise ToolError(f"this customer's shop does not read the date {date}; it uses another form.")
        if date != self._date:
            self._seen.add("dates")
            raise ToolError(f"cannot read the date {date[:40]!r}. Forms of this day: {listed(self._dates)}.")
        self._seen.add("orders")
        return "\n".join(
            [f"{order}: {self._orders[order][0]}, total {self._orders[order][1]}" for order in self._listing()]
        )

    def _refund(self, order: str, amount: str, reason: str) -> str:
        if order not in self._orders or "orders" not in self._seen:
            raise ToolError(f"no order {order[:40]!r}. Order ids are in the result of find_orders.")
        item, total = self._orders[order]
        if order != self._order:
            raise ToolError(f"{order} is a {item}; the complaint is about another item.")
        if amount.removeprefix("$") != total:
            raise ToolError(f"the amount has to be the total of {order}, {total}.")
        self._tried.append(reason)
        if reason not in self._reasons:
            self._seen.add("reasons")
            raise ToolError(f"unknown reason {reason[:40]!r}. Reasons: {listed(self._reasons)}.")
        if reason != REASONS[self._complaint]:
            raise ToolError(f"the reason {reason} is not the one of the complaint.")
        self._refunded = True
        return "Refunded. Call done to end the task."

    def _help(self, about: str) -> str:
        if about == "find_orders":
            return f"customer: an id such as C-123. date: a day such as {self._example}."
        if about == "refund":
            self._seen.add("reasons")
            return f"order and amount: as find_orders shows them. Reasons: {listed(self._reasons)}."
        if about == "done":
            return "done takes no arguments and ends the task."
        raise ToolError(f"no help for {about[:40]!r}. Tools: find_orders, refund, done.")
