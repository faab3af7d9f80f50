"""The names of the conventions are those of the conventions as they are installed."""

from __future__ import annotations

import pytest

from reasonblocks.backends.otel_sink import _names
from tests.core.otel.world import emitted, finished, started, step

STRINGS = {value for value in vars(_names).values() if isinstance(value, str)}


def test_every_name_of_genai_is_one_of_its_attributes() -> None:
    module = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    known = {value for value in vars(module).values() if isinstance(value, str)}
    ours = {name for name in STRINGS if name.startswith("gen_ai.")} - {_names.EVALUATION}
    assert len(ours) > 15
    assert ours <= known


def test_every_name_of_openinference_is_one_of_its_attributes() -> None:
    module = pytest.importorskip("openinference.semconv.trace", reason="needs openinference-semantic-conventions")
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    known = {value for cls in classes for value in vars(cls).values() if isinstance(value, str)}
    known |= {f"{start}.0.{end}" for start in known for end in known if start == "llm.output_messages"}
    ours = {value for name, value in vars(_names).items() if name.startswith("OI_") and isinstance(value, str)}
    ours |= {*_names.OI_EVALUATION_FIELDS}
    assert len(ours) > 15
    assert ours - {_names.OI_CODE, _names.OI_CALLS} <= known
    assert _names.OI_CALLS == "llm.output_messages.0.message.tool_calls"


def test_every_other_attribute_has_our_prefix() -> None:
    events = (started(agent_name="a", session_id="s"), step(0), step(1, scores={"a": 1.0}, action="b"), finished())
    memory = emitted(*events, calls=True)
    names = {name for one in memory.run.all() for name in one.attributes}
    theirs = {name for name in names if name in STRINGS or name.startswith("evaluations.")}
    assert {name for name in names - theirs if not name.startswith("reasonblocks.")} == set()
