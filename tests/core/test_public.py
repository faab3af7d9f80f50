"""The public names."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

import reasonblocks

PROMISED = {
    "reasonblocks": """
        AdapterCaps Budget CodebaseMemory DifficultyFSM Escalate FSMState HashEmbedder HttpSink JsonlSink LocalStore
        OpenTelemetrySink Pattern QdrantStore ReasonBlocks ReasonBlocksError RunView SQLiteMonitorSink SteeringSession
        Step StepInput StepLogEntry StepOutcome Thresholds ToolCall ToolResult TraceStateManager Usage __version__
    """,
    "reasonblocks.types": """
        Account AdapterCaps Advice AdviceRequest Budget Codebase CodebaseSummary DifficultyParts Doubt ETrace Escalate
        Evaluation FSMState Finding Freshness GateDecision Injected Injection JSON Level Memories Mode Note Observed
        Patience Pattern Pending Placement RecalledFinding Routing RunFields RunInfo RunKeywords RunOptions ScoreMemory
        Settings SkippedReason Source Step StepDecision StepInput StepLogEntry StepOutcome StepRecord Tier TierUse
        ToolCall ToolResult TraceState Transition Usage
    """,
    "reasonblocks.advisors": """
        chat
    """,
    "reasonblocks.ports": """
        Advisor AsyncEvaluator AsyncPatternStore BatchSink Curve Embedder Evaluate Evaluator FindingStore Mailbox Memo
        Monitor PatternStore Retrieve SimilarityCurves SpeakingMonitor SummingEmbedder TelemetrySink Vector Vectors
    """,
    "reasonblocks.exceptions": """
        AdapterMissing BadAnswer ConfigError DeadlineExceeded EventError ExtraMissing ForeignDistribution
        ProtocolError ReasonBlocksError RecordError Refused RunStopped SnapshotError StaleKey StoreError StoreFull
        SwitchedOff Unavailable UnknownKeyword
    """,
    "reasonblocks.events": """
        Event RunFinish RunStart StepEvent completed_of entry_of event_of step_event
    """,
    "reasonblocks.wire": """
        ClearResponse CodebaseList EvaluateRequest EvaluateResponse EventsRequest EventsResponse FindingList
        FindingRequest FindingsRequest FindingsResponse InvalidateRequest InvalidateResponse MAX_INJECTED MOST_LISTED
        MOST_STORED PREFIX RecallRequest RecallResponse RetrieveRequest RetrieveResponse ScoreRequest
        ScoreResponse WireCodebase WireFinding WireRecalled WireRefused WireStep WireTrace evaluate_request
        evaluation_response injected_of retrieve_request retrieve_response
    """,
    "reasonblocks.memory": """
        Codebase CodebaseMemory CodebaseSummary Finding FindingStore Freshness MemoryTool RecalledFinding ToolAnswer
        memory_tools recalled_text
    """,
    "reasonblocks.render": """
        FRAME count_breakpoints defuse_frames has_tail place steered_request with_guidance with_message with_tail
    """,
    "reasonblocks.adapters": """
        ABANDONED ADAPTERS AdapterRun CLOSE_SECONDS Held HeldRun InThread Newest OpenCall REFUSALS RoutedModels
        RunFields RunKeywords RunOptions RunView Runs SteeringFace SteeringFlow SteeringHandle Wait adrive attribute
        call_key clip cut_with_hash decode digest drive failure_of find_adapter is_identifier model_name ms_since
        new_user_text output_of prepare_snapshots same_model split_keywords status_of user_text view_of
    """,
    "reasonblocks.backends.embed": """
        CallableEmbedder HashEmbedder OpenAIEmbedder StaticEmbedder default_embedder
    """,
    "reasonblocks_testing": """
        ConformanceSuite Golden Harness LoopHarness ParityRun Ran RecordingSink Script ScriptedEvaluator
        ScriptedMailbox ScriptedReasonBlocks ScriptedStore Seen Turn World load_golden parity_lines scripted_scorer
        tool_call tool_result write_parity
    """,
    "reasonblocks_testing.server": """
        Answer Asked ProviderError ScriptedServer
    """,
    "reasonblocks_testing.rb_api": """
        KEY LIES Drip Fault Hang HangUp Lie Lying QueuedNote Received ScriptedRbApi Slow Status
    """,
    "reasonblocks_workbench.traces": """
        FileReader READERS Reader Record RecordedRun RunLog UNPACKED_BYTES UNPACKED_VARIABLE files_in
        installed_readers read_logs read_records read_runs
    """,
    "reasonblocks_workbench.learning": """
        Distil Evidence Gathered Proposal RunDigest digest_of distil learn proposals read_proposals together
        write_proposals
    """,
    "reasonblocks_workbench.calibration": """
        fit_level
    """,
    "reasonblocks_workbench.report": """
        Assets Listing NavLink OnePage ROUTINE Row RunLine RunPage SCRIPT STANDING STYLESHEET TEMPLATES Tally Told
        Verdict completed_before health_page page_of_log page_of_replayed run_line run_page runs_page
    """,
    "reasonblocks.patterns.starter": """
        starter_patterns
    """,
    "reasonblocks_workbench.cli": """
        main
    """,
}
"""Every promised module and its names. Everything else may change in any release."""


def modules() -> dict[str, ModuleType]:
    return {name: importlib.import_module(name) for name in PROMISED}


def own_names(module: ModuleType) -> set[str]:
    """Classes and functions that a module defines under public names."""
    public = {key: value for key, value in vars(module).items() if not key.startswith("_")}
    return {
        key for key, value in public.items() if callable(value) and getattr(value, "__module__", "") == module.__name__
    }


def test_the_promised_modules_list_the_promised_names_each_once() -> None:
    listed = {name: list(module.__all__) for name, module in modules().items()}
    assert {name: sorted(names) for name, names in listed.items()} == {
        name: sorted(names.split()) for name, names in PROMISED.items()
    }


def test_every_promised_name_is_there() -> None:
    missing = [
        f"{home}.{name}" for home, module in modules().items() for name in module.__all__ if not hasattr(module, name)
    ]
    assert missing == []


def test_what_a_promised_module_defines_under_a_public_name_is_promised() -> None:
    unlisted = {name: own_names(module) - {*module.__all__} for name, module in modules().items()}
    assert {name: names for name, names in unlisted.items() if names} == {}


def test_dir_of_the_package_is_what_is_public() -> None:
    assert dir(reasonblocks) == sorted(reasonblocks.__all__)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = reasonblocks.Nothing


def test_a_star_import_gives_what_is_public() -> None:
    names: dict[str, object] = {}
    exec("from reasonblocks import *", names)
    assert set(names) - {"__builtins__"} == set(reasonblocks.__all__)
