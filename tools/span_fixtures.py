"""Writes the recorded spans that the reader `otlp` is tested with: real agents, instrumentations and exporters.

`python tools/span_fixtures.py NAME` needs an environment with the packages that `MADE` names beside the file, and with
`pytest`, `numpy`, `pydantic` and `typing_extensions`. No request leaves this machine: the model is scripted, on
loopback, and the spans stay in memory.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = map(str, (ROOT, *ROOT.glob("packages/*/src")))

from trace_fixtures import FIXTURES, MODEL, SCHEMA, TASKS, Json, in_turn, look, looked, looked_at  # noqa: E402

from reasonblocks_testing.server import ScriptedServer  # noqa: E402


def of(module: str, name: str) -> Any:
    """Return an attribute of a package that the usual environments do not have."""
    return getattr(import_module(module), name)


@contextmanager
def recording() -> Iterator[list[Any]]:
    """Yield the list that has, at the end of the block, all spans of the global tracer provider."""
    provider = of("opentelemetry.sdk.trace", "TracerProvider")()
    memory = of("opentelemetry.sdk.trace.export.in_memory_span_exporter", "InMemorySpanExporter")()
    provider.add_span_processor(of("opentelemetry.sdk.trace.export", "SimpleSpanProcessor")(memory))
    of("opentelemetry.trace", "set_tracer_provider")(provider)
    spans: list[Any] = []
    yield spans
    spans += memory.get_finished_spans()


# --- agents


def strands() -> None:
    """An agent of Strands, which makes its own spans."""
    tool = of("strands", "tool")(look)
    with ScriptedServer(in_turn) as server:
        model = of("strands.models.anthropic", "AnthropicModel")(
            client_args={"base_url": server.anthropic_url, "api_key": "none"}, model_id=MODEL, max_tokens=999
        )
        agent = of("strands", "Agent")(
            name="fixer", model=model, tools=[tool], system_prompt="You fix bugs.", callback_handler=None
        )
        for task in TASKS:
            agent(task)


def anthropic_loop() -> None:
    """A loop on the `anthropic` client, under the instrumentation of OpenInference."""
    of("openinference.instrumentation.anthropic", "AnthropicInstrumentor")().instrument()
    tools = [{"name": "look", "input_schema": SCHEMA}]
    messages: list[Json] = []
    tracer = of("opentelemetry.trace", "get_tracer")("loop")
    with ScriptedServer(in_turn) as server:
        client = of("anthropic", "Anthropic")(base_url=server.anthropic_url, api_key="none")
        with tracer.start_as_current_span("loop"):
            for task in TASKS:
                messages.append({"role": "user", "content": task})
                while messages[-1]["role"] == "user":
                    answer = client.messages.create(model=MODEL, max_tokens=999, messages=messages, tools=tools)
                    messages.append({"role": "assistant", "content": answer.content})
                    calls = [block for block in answer.content if block.type == "tool_use"]
                    results = [
                        {"type": "tool_result", "tool_use_id": call.id, "content": looked(call.input)} for call in calls
                    ]
                    if results:
                        messages.append({"role": "user", "content": results})


def langchain_agent(*callbacks: Any) -> None:
    model_class, tool = of("langchain_anthropic", "ChatAnthropic"), of("langchain_core.tools", "tool")("look")
    tool_error = of("langchain_core.tools", "ToolException")

    def look_or_fail(path: str) -> str:
        """Looks at a file."""
        output = looked_at(path)
        if path == "b.py":
            raise tool_error(output)
        return output

    looking = tool(look_or_fail)
    looking.handle_tool_error = True
    with ScriptedServer(in_turn) as server:
        model = model_class(model=MODEL, base_url=server.anthropic_url, api_key="none")
        agent = of("langchain.agents", "create_agent")(model, tools=[looking], name="fixer")
        found: list[Any] = []
        for task in TASKS:
            found = agent.invoke({"messages": [*found, ("user", task)]}, {"callbacks": [*callbacks]})["messages"]


def langchain_openinference() -> None:
    of("openinference.instrumentation.langchain", "LangChainInstrumentor")().instrument()
    langchain_agent()


def langchain_openllmetry() -> None:
    of("opentelemetry.instrumentation.langchain", "LangchainInstrumentor")().instrument()
    langchain_agent()


def autogen() -> None:
    """An agent of AutoGen, which makes spans of its own for agents and tools."""

    async def run(server: ScriptedServer) -> None:
        client = of("autogen_ext.models.openai", "OpenAIChatCompletionClient")(
            model=MODEL,
            base_url=server.openai_url,
            api_key="none",
            model_info={
                "vision": False,
                "function_calling": True,
                "json_output": False,
                "family": "unknown",
                "structured_output": False,
            },
        )
        agent = of("autogen_agentchat.agents", "AssistantAgent")(
            "fixer", model_client=client, tools=[look], max_tool_iterations=5, system_message="You fix bugs."
        )
        for task in TASKS:
            await agent.run(task=task)
        await client.close()

    with ScriptedServer(in_turn) as server:
        asyncio.run(run(server))


def autogen_openai() -> None:
    of("opentelemetry.instrumentation.openai", "OpenAIInstrumentor")().instrument()
    autogen()


def autogen_openinference() -> None:
    of("openinference.instrumentation.autogen_agentchat", "AutogenAgentChatInstrumentor")().instrument()
    autogen()


def langfuse_langchain() -> None:
    """An agent of LangChain under the handler of Langfuse."""
    of("langfuse", "Langfuse")(
        public_key="pk", secret_key="none", base_url="http://127.0.0.1:9", span_exporter=Nowhere()
    )
    langchain_agent(of("langfuse.langchain", "CallbackHandler")())


def langfuse_openai() -> None:
    """A loop on Langfuse's `openai` client, with observations of the agent and its tools."""
    setting = {"public_key": "pk", "secret_key": "none", "base_url": "http://127.0.0.1:9"}
    langfuse = of("langfuse", "Langfuse")(**setting, span_exporter=Nowhere())
    tools = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
    messages: list[Any] = []
    with ScriptedServer(in_turn) as server:
        client = of("langfuse.openai", "OpenAI")(base_url=server.openai_url, api_key="none")
        for task in TASKS:
            messages.append({"role": "user", "content": task})
            with langfuse.start_as_current_observation(name="fixer", as_type="agent", input=task) as agent:
                while True:
                    said = (
                        client.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0].message
                    )
                    messages.append(said.model_dump(exclude_none=True))
                    for call in said.tool_calls or ():
                        given = json.loads(call.function.arguments)
                        with langfuse.start_as_current_observation(name="look", as_type="tool", input=given) as tool:
                            output = looked(given)
                            failed = {"level": "ERROR", "status_message": output} if "Error" in output else {}
                            tool.update(output=output, **failed)
                        messages.append({"role": "tool", "tool_call_id": call.id, "content": output})
                    if not said.tool_calls:
                        agent.update(output=said.content)
                        break


class Nowhere:
    """An exporter of spans that keeps them here."""

    def export(self, spans: Any) -> Any:
        return of("opentelemetry.sdk.trace.export", "SpanExportResult").SUCCESS

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True


OBSERVATION = "langfuse.observation."


def observations_of(spans: list[Any]) -> list[Json]:
    """Return the spans that Langfuse made as the observations that its API returns, by the types of its own client.

    No server of Langfuse runs here: the fields are those of `langfuse.api`, their values those of the spans.
    """
    observation = of("langfuse.api", "ObservationV2")
    found: list[Json] = []
    for span in spans:
        held = {name.removeprefix(OBSERVATION): value for name, value in span.attributes.items()}
        if "type" not in held:
            continue
        context = span.context
        values = {
            "id": f"{context.span_id:016x}",
            "trace_id": f"{context.trace_id:032x}",
            "parent_observation_id": f"{span.parent.span_id:016x}" if span.parent else None,
            "start_time": datetime.fromtimestamp(span.start_time / 1e9, timezone.utc),
            "end_time": datetime.fromtimestamp(span.end_time / 1e9, timezone.utc),
            "project_id": "project",
            "type": str(held["type"]).upper(),
            "name": span.name,
            "level": held.get("level", "DEFAULT"),
            "status_message": held.get("status_message"),
            "input": _parsed(held.get("input")),
            "output": _parsed(held.get("output")),
            "model": held.get("model.name"),
            "usage_details": dict(_usage(_parsed(held.get("usage_details")) or {})),
        }
        found.append(json.loads(observation(**values).model_dump_json(by_alias=True, exclude_unset=True)))
    return sorted(found, key=lambda item: str(item["startTime"]))


def _usage(details: Json) -> Iterator[tuple[str, int]]:
    """Yield the counts of tokens as the server of Langfuse has them: those of OpenAI without the parts of a whole."""
    for whole, name in (("prompt_tokens", "input"), ("completion_tokens", "output")):
        if whole in details:
            parts = details[f"{whole}_details"] or {}
            yield name, details[whole] - sum(parts.values())
            yield from ((f"{name}_{part}", count) for part, count in parts.items())
    yield from ((name, count) for name, count in details.items() if isinstance(count, int) and "_tokens" not in name)
    yield from ((name, count) for name, count in details.items() if name.startswith("cache_"))


def _parsed(value: Any) -> Any:
    """Return the value of an attribute, which the server of Langfuse parses if it is JSON."""
    with suppress(ValueError, TypeError):
        return json.loads(value)
    return value


# --- files


@dataclass(frozen=True, kw_only=True)
class Made:
    """The way in which a file is made: its agent, packages and variables."""

    run: Callable[[], None]
    packages: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    write: Callable[[list[Any]], Any] = lambda spans: request_of(spans)


MADE = {
    "strands.json": Made(run=strands, packages=("strands-agents",)),
    "strands_latest.json": Made(
        run=strands,
        packages=("strands-agents",),
        variables={"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"},
    ),
    "openinference_anthropic.json": Made(
        run=anthropic_loop, packages=("openinference-instrumentation-anthropic", "anthropic")
    ),
    "openinference_langchain.json": Made(
        run=langchain_openinference, packages=("openinference-instrumentation-langchain", "langchain", "langgraph")
    ),
    "openllmetry_langchain.json": Made(
        run=langchain_openllmetry, packages=("opentelemetry-instrumentation-langchain", "langchain", "langgraph")
    ),
    "autogen_openai.json": Made(
        run=autogen_openai, packages=("autogen-agentchat", "opentelemetry-instrumentation-openai")
    ),
    "autogen_openinference.json": Made(
        run=autogen_openinference, packages=("autogen-agentchat", "openinference-instrumentation-autogen-agentchat")
    ),
}
DROPPED = re.compile(
    r"exception\.stacktrace|telemetry\.sdk\.\w+|server\.port|metadata|traceloop\..+|gen_ai\.task\.\w+|llm\.tools\..+"
    r"|llm\.invocation_parameters|gen_ai\.tool\.(definitions|json_schema)|gen_ai\.workflow\..+"
)
"""Attributes that concern this machine, describe the tools, or repeat others, and that no reader needs."""
MADE |= {
    "langfuse_langchain.json": Made(
        run=langfuse_langchain, packages=("langfuse", "langchain", "langgraph"), write=observations_of
    ),
    "langfuse_openai.json": Made(run=langfuse_openai, packages=("langfuse", "openai"), write=observations_of),
}
IDS = ("traceId", "spanId", "parentSpanId")
TIMES = re.compile(r'("(?:\w+UnixNano)"): "(\d+)"')
UUIDS = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:\+00:00|Z)?")


def request_of(spans: list[Any]) -> Json:
    """Return the export request of the spans; unlike in the JSON of protobuf, the ids are hexadecimal."""
    encode = of("opentelemetry.exporter.otlp.proto.common.trace_encoder", "encode_spans")
    body = of("google.protobuf.json_format", "MessageToDict")(encode(spans), use_integers_for_enums=True)
    ids: dict[str, str] = {}

    def kept(value: Any, key: str = "") -> Any:
        if isinstance(value, list):
            return [kept(item) for item in value if not DROPPED.fullmatch(str(_key(item)))]
        if isinstance(value, dict):
            return {name: kept(item, name) for name, item in value.items()}
        width = len(base64.b64decode(value)) * 2 if key in IDS else 0
        return ids.setdefault(value, f"{len(ids) + 1:0{width}x}") if width else value

    found: Json = kept(body)
    return found


def _key(item: Any) -> Any:
    return item.get("key") if isinstance(item, dict) else None


def scrubbed(text: str, home: str) -> str:
    """Return the text with times in their order, and without the ids and paths of this machine."""
    times = {time: rank for rank, time in enumerate(sorted({found[1] for found in TIMES.findall(text)}), 1)}
    text = TIMES.sub(lambda found: f'{found.group(1)}: "{times[found.group(2)]}000"', text)
    for path, name in ((home, "/home"), (sys.prefix, "/environment"), (str(ROOT), "/repo")):
        text = text.replace(path, name)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", re.sub(r"_[0-9a-f]{8}(?=\d{6}\b)|0x[0-9a-f]+", "_", text))
    uuids = {uuid: f"uuid-{at}" for at, uuid in enumerate(dict.fromkeys(UUIDS.findall(text)), 1)}
    seconds = {
        time: f"2026-01-01T00:00:00.{rank:06}Z" for rank, time in enumerate(sorted(set(SECONDS.findall(text))), 1)
    }
    return SECONDS.sub(lambda found: seconds[found.group()], UUIDS.sub(lambda found: uuids[found.group()], text))


def write(name: str) -> None:
    made = MADE[name]
    with tempfile.TemporaryDirectory() as home:
        os.environ.clear()
        os.environ.update({"PATH": os.defpath, "HOME": home, "TRACELOOP_TELEMETRY": "false", **made.variables})
        with recording() as spans:
            made.run()
        (FIXTURES / name).write_text(
            scrubbed(json.dumps(made.write(spans), ensure_ascii=False), home) + "\n", encoding="utf-8"
        )
    sys.stdout.write(f"{name}: " + ", ".join(f"{package} {version(package)}" for package in made.packages) + "\n")


if __name__ == "__main__":
    write(sys.argv[1])
