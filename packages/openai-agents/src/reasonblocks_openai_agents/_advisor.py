"""An advisor that is a model of the SDK."""

from __future__ import annotations

from agents import Model, ModelSettings, ModelTracing

from reasonblocks.advisors.asking import INSTRUCTIONS, advice_in, question
from reasonblocks.messages.openai import answer_of
from reasonblocks.ports import Advisor
from reasonblocks.types import Advice, AdviceRequest


def ask_model(model: Model) -> Advisor:
    """Return an advisor for `ReasonBlocks(advisor=...)` that asks a model of the SDK. Its calls are not traced."""

    async def advise(request: AdviceRequest) -> Advice:
        answer = await model.get_response(
            system_instructions=INSTRUCTIONS,
            input=question(request),
            model_settings=ModelSettings(),
            tools=[],
            output_schema=None,
            handoffs=[],
            tracing=ModelTracing.DISABLED,
            previous_response_id=None,
            conversation_id=None,
            prompt=None,
        )
        return advice_in(answer_of(answer.output).thought, answer.usage.total_tokens or None)

    return advise
