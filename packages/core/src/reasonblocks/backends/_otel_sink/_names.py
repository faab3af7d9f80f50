"""Holds the names of all spans, events and attributes that the sink emits.

The conventions of OpenTelemetry for generative AI (`gen_ai.`) are in development, and those of OpenInference change,
too: when they do, only this module changes.
"""

from __future__ import annotations

# --- spans and events

INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_agent", "chat", "execute_tool"
"""Operations of GenAI, which are also the first word of their spans' names."""
STEP = "reasonblocks.step"
OUTCOME = "reasonblocks.outcome"
INJECTION = "reasonblocks.injection"
EVALUATION = "gen_ai.evaluation.result"

# --- both conventions

ERROR_TYPE = "error.type"
OTHER_ERROR = "_OTHER"
"""The type of an error that has none."""
TOOL_ERROR = "tool_error"

# --- GenAI

OPERATION = "gen_ai.operation.name"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION_ID = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_SCORE = "gen_ai.evaluation.score.value"
EVALUATION_LABEL = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION = "gen_ai.evaluation.explanation"

# --- OpenInference

OI_KIND = "openinference.span.kind"
OI_AGENT_NAME = "agent.name"
OI_SESSION_ID = "session.id"
OI_METADATA = "metadata"
OI_INPUT = "input.value"
OI_OUTPUT = "output.value"
OI_MODEL = "llm.model_name"
OI_PROMPT_TOKENS = "llm.token_count.prompt"
OI_COMPLETION_TOKENS = "llm.token_count.completion"
OI_TOTAL_TOKENS = "llm.token_count.total"
OI_CACHE_READ_TOKENS = "llm.token_count.prompt_details.cache_read"
OI_CACHE_WRITE_TOKENS = "llm.token_count.prompt_details.cache_write"
OI_ANSWER = "llm.output_messages.0.message"
OI_TOOL_NAME = "tool.name"
OI_TOOL_ID = "tool.id"
OI_EVALUATIONS = "evaluations"

# --- ours

PREFIX = "reasonblocks."
RUN_ID = "reasonblocks.run.id"
RUN_OUTCOME = "reasonblocks.run.outcome"
RUN_STEPS = "reasonblocks.run.steps"
RUN_TOKENS = "reasonblocks.run.tokens"
RUN_DOUBTS = "reasonblocks.run.doubts"
RUN_UNFINISHED = "reasonblocks.run.unfinished"
RUN_CONTINUED = "reasonblocks.run.continued"
STEP_INDEX = "reasonblocks.step.index"
TOOL_IS_ERROR = "reasonblocks.tool.is_error"

# --- environment

CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CONTENT_ON = frozenset({"true", "1", "span_only", "span_and_event"})
"""The values that permit texts: the boolean of older conventions, and the modes of newer ones that include spans."""
