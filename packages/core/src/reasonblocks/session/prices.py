"""Prices model calls, by the package genai-prices: list prices as of its installed version, without the network."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ..exceptions import ExtraMissing
from ..util.text import preview

if TYPE_CHECKING:
    from ..types import StepOutcome, Usage


class UnknownPrice(LookupError):
    """A call has no price; the text says why."""


@cache
def load_prices() -> Any:
    """Import genai-prices and read its list, which takes half a second: so where a budget is set. Returns the module.

    Raises `ExtraMissing`.
    """
    try:
        import genai_prices
    except ImportError as exc:
        raise ExtraMissing("a budget of cost_usd", "genai-prices", "cost") from exc
    genai_prices.calc_price(genai_prices.Usage(input_tokens=1), "gpt-4o", provider_id="openai")
    return genai_prices


def cost_of(outcome: StepOutcome) -> float:
    """Return the price of a call in US dollars; of a failed call that reported no tokens, 0.

    Raises `UnknownPrice` for a model without a price, and for an answer without tokens.
    """
    usage = outcome.usage
    if usage.input is None or usage.output is None:
        if outcome.error is not None and usage.total is None:
            return 0.0
        raise UnknownPrice("a call reported no tokens")
    return _price(outcome.model, usage)


def _price(model: str, usage: Usage) -> float:
    prices = load_prices()
    used = prices.Usage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read or 0,
        cache_write_tokens=usage.cache_write or 0,
    )
    provider, slash, name = model.partition("/")
    for ref, provider_id in ((model, None), (name, provider)) if slash else ((model, None),):
        try:
            return float(prices.calc_price(used, ref, provider_id=provider_id).total_price)
        except (LookupError, ValueError):  # no such provider or model, or counts that do not add up
            continue
    raise UnknownPrice(f"the price of a call of model {preview(model, 80)!r} is unknown")
