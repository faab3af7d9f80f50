"""The conformance suite loses no scenario unnoticed: taking one out means taking its name out here, too."""

from __future__ import annotations

from reasonblocks_testing import ConformanceSuite

SCENARIOS = {
    "test_a_budget_is_told_and_ends_the_run",
    "test_a_call_starts_no_thread",
    "test_a_cancelled_run_tells_what_it_did",
    "test_a_fault_in_deciding_a_call_leaves_the_agent_alone",
    "test_a_fault_in_recording_an_answer_leaves_the_agent_alone",
    "test_a_hanging_store_is_switched_off",
    "test_a_hard_run_is_routed_and_comes_back",
    "test_a_long_run_is_steered_to_its_end",
    "test_a_model_error_passes_through_after_one_call",
    "test_a_model_that_cannot_be_built_leaves_the_steering",
    "test_a_nested_run_names_the_call_that_it_runs_in",
    "test_a_note_of_an_operator_is_told_once",
    "test_a_pause_is_no_end",
    "test_a_raising_scorer_leaves_the_agent_alone",
    "test_a_result_that_nobody_calls_an_error_is_judged_by_its_words",
    "test_a_retried_call_keeps_its_decision",
    "test_a_run_after_a_nested_one_has_no_parents",
    "test_a_run_after_tools_in_the_same_task_has_no_parents",
    "test_a_run_goes_on_in_another_process",
    "test_a_run_has_the_name_of_its_agent",
    "test_a_second_look_is_one_more_call",
    "test_a_second_run_on_the_same_object_starts_anew",
    "test_a_shortened_history_loses_no_step",
    "test_a_slow_store_costs_its_deadline_at_most",
    "test_a_stopped_run_makes_no_further_call",
    "test_a_stuck_run_is_escalated_and_comes_back",
    "test_a_text_can_be_replaced_or_dropped",
    "test_a_tool_error_is_an_error_of_the_step",
    "test_an_advisor_is_asked_for_each_text",
    "test_an_agent_keeps_its_model_after_a_routed_run",
    "test_an_agent_within_a_tool_has_a_run_of_its_own",
    "test_an_agent_without_a_system_prompt_is_steered",
    "test_an_observed_run_is_told_no_note",
    "test_an_observed_run_sends_the_requests_of_an_unsteered_one",
    "test_backends_that_are_down_leave_the_agent_alone",
    "test_backends_that_lie_are_not_believed",
    "test_golden_runs_decide_as_written",
    "test_guidance_at_the_tail_reaches_the_call",
    "test_history_stays_clean",
    "test_observing_records_what_steering_would_say",
    "test_odd_and_huge_texts_pass",
    "test_parallel_tool_calls_are_one_step",
    "test_runs_at_once_on_one_agent_do_not_mix",
    "test_sessions_of_ended_runs_are_let_go",
    "test_standing_rules_are_shown_at_every_call",
    "test_the_adapters_own_work_does_not_grow",
    "test_the_event_loop_goes_on_while_a_scorer_works",
    "test_the_model_reads_the_guidance_that_the_core_decides",
    "test_the_tail_adds_no_message",
    "test_turns_that_only_reason_are_scored_on_their_reasoning",
    "test_turns_without_text_are_scored",
}


def test_every_scenario_is_still_there() -> None:
    assert {name for name in dir(ConformanceSuite) if name.startswith("test_")} == SCENARIOS
