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
OI_ANSWER_ROLE = "llm.output_messages.0.message.role"
OI_ANSWER_TEXT = "llm.output_messages.0.message.content"
OI_CALLS = "llm.output_messages.0.message.tool_calls"
OI_CALL_ID = "tool_call.id"
OI_CALL_NAME = "tool_call.function.name"
OI_CALL_ARGUMENTS = "tool_call.function.arguments"
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
STEP_MODE = "reasonblocks.step.mode"
STEP_DOUBTS = "reasonblocks.step.doubts"
ROUTE = "reasonblocks.route"
INJECTION_SOURCE = "reasonblocks.injection.source"
INJECTION_PLACEMENT = "reasonblocks.injection.placement"
INJECTION_PATTERN_IDS = "reasonblocks.injection.pattern_ids"
INJECTION_NOTE_IDS = "reasonblocks.injection.note_ids"
INJECTION_TEXT = "reasonblocks.injection.text"
INJECTION_WITHHELD = "reasonblocks.injection.withheld"
TOOL_IS_ERROR = "reasonblocks.tool.is_error"

# --- attributes that have the value of one field

RUN_FIELDS = {
    AGENT_NAME: "agent_name",
    OI_AGENT_NAME: "agent_name",
    CONVERSATION_ID: "session_id",
    OI_SESSION_ID: "session_id",
    REQUEST_MODEL: "model",
    "reasonblocks.run.parent_id": "parent_run_id",
    "reasonblocks.run.parent_call_id": "parent_call_id",
    "reasonblocks.run.framework": "framework",
    "reasonblocks.run.mode": "mode",
    "reasonblocks.run.task_profile": "task_profile",
    "reasonblocks.run.org_id": "org_id",
    "reasonblocks.run.project_id": "project_id",
    "reasonblocks.run.codebase_id": "codebase_id",
}
"""Fields of `RunInfo`."""
STEP_FIELDS = {
    STEP_INDEX: "step_index",
    "reasonblocks.step.composite": "composite",
    "reasonblocks.step.failure_type": "failure_type",
    "reasonblocks.step.monitors_fired": "monitors_fired",
    "reasonblocks.step.injection_sources": "injection_sources",
    "reasonblocks.step.tokens": "tokens",
}
"""Fields of `StepEvent`."""
STEP_METADATA = {
    "reasonblocks.step.fsm.state": "fsm_state",
    "reasonblocks.step.difficulty": "difficulty",
    "reasonblocks.step.gate.decision": "gate_decision",
    "reasonblocks.step.skipped_reason": "skipped_reason",
    "reasonblocks.step.overhead_ms": "overhead_ms",
    "reasonblocks.step.latency_ms": "latency_ms",
    "reasonblocks.step.attempts": "attempts",
    "reasonblocks.step.final": "final",
    "reasonblocks.step.finding_kind": "finding_kind",
    "reasonblocks.step.judged_by": "judged_by",
    "reasonblocks.step.stop": "stop",
    "reasonblocks.step.interrupt": "interrupt",
    ROUTE: "route",
    "reasonblocks.withheld.route": "withheld_route",
    "reasonblocks.withheld.stop": "withheld_stop",
    "reasonblocks.withheld.interrupt": "withheld_interrupt",
}
"""Fields of the metadata of a `StepEvent`."""
CALL_FIELDS = {
    STEP_INDEX: "step_index",
    RESPONSE_MODEL: "step_model",
    OI_MODEL: "step_model",
    INPUT_TOKENS: "input_tokens",
    OUTPUT_TOKENS: "output_tokens",
    CACHE_READ_TOKENS: "cache_read_tokens",
    OI_PROMPT_TOKENS: "input_tokens",
    OI_COMPLETION_TOKENS: "output_tokens",
    OI_TOTAL_TOKENS: "tokens",
    OI_CACHE_READ_TOKENS: "cache_read_tokens",
}
"""Fields of `StepEvent`, for the span of its call."""
CALL_METADATA = {CACHE_WRITE_TOKENS: "cache_write_tokens", OI_CACHE_WRITE_TOKENS: "cache_write_tokens"}
OI_EVALUATION_FIELDS = {
    "evaluation.name": EVALUATION_NAME,
    "evaluation.score": EVALUATION_SCORE,
    "evaluation.label": EVALUATION_LABEL,
    "evaluation.explanation": EVALUATION_EXPLANATION,
}
"""The fields of one of OpenInference's evaluations, and the attributes of ours that have their values."""
OI_ANNOTATOR, OI_CODE = "evaluation.annotator_kind", "CODE"

# --- environment

CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CONTENT_ON = frozenset({"true", "1", "span_only", "span_and_event"})
"""The values that permit texts: the boolean of older conventions, and the modes of newer ones that include spans."""
