"""Trouble that goes in circles: the same again with the same outcome, in one form or another."""

# One step of a trajectory is one line, however long, so that a run reads from top to bottom.
# ruff: noqa: E501

from __future__ import annotations

from tests.core.monitors.trajectories import Shelf, Stuck, bash, call, react

__all__ = ["LOOPS"]

LOOPS: Shelf[Stuck] = Shelf()

PATIENCE = 6
"""Equal answers "still running" in a row after which nobody is told yet; by the twelfth the agent has to be."""
TWELFTH = 12 - PATIENCE - 1


@LOOPS
def a_service_agent_polls_a_job_that_never_ends() -> Stuck:
    thoughts = "Still running. I'll check again.|Let me check the status of the job.|It needs more time.|Checking again.".split(
        "|"
    )
    polls = [
        call(thoughts[n % 4], "get_job", {"job_id": "j-5581", "status": "RUNNING"}, job_id="j-5581") for n in range(20)
    ]
    start = call("Starting the reconciliation.", "start_job", {"job_id": "j-5581"}, kind="reconcile", month="2024-03")
    return Stuck(
        task="Reconcile the payments of March",
        before=[start, *polls[:PATIENCE]],
        stuck=polls[PATIENCE:],
        plain_at=TWELFTH,
    )


@LOOPS
def a_shell_agent_polls_a_deployment_that_never_gets_ready() -> Stuck:
    thoughts = "The pod is pending; waiting for it.||Not ready yet, waiting another minute.|Let me look again.".split(
        "|"
    )
    seen = "NAME      READY   STATUS    RESTARTS\napi-7d9   0/1     Pending   0"
    polls = [bash(thoughts[n % 4], "sleep 60; kubectl get pods -l app=api", seen) for n in range(20)]
    start = bash(
        "Rolling the new image out.",
        "kubectl set image deploy/api api=acme/api:2.4",
        "deployment.apps/api image updated",
    )
    return Stuck(
        task="Deploy acme/api:2.4 to staging",
        before=[start, *polls[:PATIENCE]],
        stuck=polls[PATIENCE:],
        plain_at=TWELFTH,
    )


@LOOPS
def a_function_agent_makes_the_same_call_again_and_again() -> Stuck:
    thoughts = "I need the customer's invoices.|Let me retrieve the invoices of this customer.|I should look at the invoices first.|To answer this I need the customer's invoices.|Retrieving the invoices.|First the invoices.".split(
        "|"
    )
    return Stuck(
        task="Why was customer C-118 charged twice?",
        before=[call("Who is C-118?", "get_customer", {"id": "C-118", "name": "Hartmann GmbH"}, id="C-118")],
        stuck=[call(thought, "list_invoices", {"invoices": []}, customer="C-118", year=2024) for thought in thoughts],
    )


@LOOPS
def a_react_agent_searches_the_same_words_again_and_again() -> Stuck:
    thoughts = "I need to find who composed it.|I should search for the composer.|The composer is still unknown, so I search for it.|I need the composer of the opera.|Let me search for the composer.|I will look for the composer.".split(
        "|"
    )
    miss = "Could not find Die Nachtfalter composer. Similar: ['Die Fledermaus', 'Nachtfalter', 'Composer']."
    return Stuck(
        task="Who composed the opera Die Nachtfalter, and where was it first given?",
        before=[
            react(
                "The opera may have a page.",
                "Search",
                "Die Nachtfalter",
                "Could not find Die Nachtfalter. Similar: ['Nachtfalter'].",
            )
        ],
        stuck=[react(thought, "Search", "Die Nachtfalter composer", miss) for thought in thoughts],
    )


@LOOPS
def a_shell_agent_runs_the_same_failing_command_again_and_again() -> Stuck:
    wrong = "bash: line 1: poetry: command not found"
    thoughts = "Installing the dependencies.|Let me install the dependencies.|The dependencies have to be installed first.|Trying the install again.|I'll run the install.".split(
        "|"
    )
    return Stuck(
        task="Get the service running locally",
        before=[
            bash("What is in here?", "ls", "README.md\npoetry.lock\npyproject.toml\nservice"),
            bash("", "sed -n 1,40p README.md", "# Service\nRun `make dev`."),
        ],
        stuck=[bash(thought, "poetry install --no-root", wrong) for thought in thoughts],
    )


@LOOPS
def a_function_agent_rewords_a_search_that_finds_nothing() -> Stuck:
    queries = [
        "leap year validation",
        "validation of leap years",
        "leap-year validation",
        "validate leap year",
        "the leap year validations",
        "leap years, validation",
    ]
    thoughts = "Where is it validated?|Maybe in another order.|With a hyphen perhaps.|As a verb.|In the plural.|Once more with a comma.".split(
        "|"
    )
    return Stuck(
        task="Find where the date parser validates leap years",
        before=[call("An overview first.", "list_dir", "dates/ tests/ setup.py", path=".")],
        stuck=[
            call(thought, "search_code", "0 results", query=query)
            for thought, query in zip(thoughts, queries, strict=True)
        ],
    )


@LOOPS
def a_react_agent_rewords_a_question_that_finds_nothing() -> Stuck:
    queries = [
        "warranty period of the X200 heater",
        "X200 heater warranty period",
        "heater X200: warranty period",
        "the warranty period of heater X200",
        "X200 heater period of warranty",
        "what is the X200 heater warranty period",
    ]
    thoughts = "The manual should say that.|Nothing; in other words.|Still nothing. Let me put the name first.|Hmm, another wording.|I try once more.|Asking it as a question.".split(
        "|"
    )
    return Stuck(
        task="How long is the warranty of the X200 heater?",
        stuck=[
            react(thought, "ManualSearch", query, "No matching passages.")
            for thought, query in zip(thoughts, queries, strict=True)
        ],
    )


@LOOPS
def a_shell_agent_goes_back_and_forth_between_two_commands() -> Stuck:
    one = [
        bash(thought, "cat settings/base.py | grep DEBUG", "DEBUG = env.bool('DEBUG')")
        for thought in ("Where is DEBUG set?", "So what does base.py say?", "Back to base.py.", "base.py again.")
    ]
    two = [
        bash(thought, "grep DEBUG .env", "DEBUG=1")
        for thought in ("It comes from the environment.", "And the .env file?", "The .env file says 1.", "And .env.")
    ]
    turns = [step for pair in zip(one, two, strict=True) for step in pair]
    return Stuck(task="Debug pages appear in production. Turn them off.", stuck=turns, plain_at=5)


@LOOPS
def a_web_agent_clicks_back_and_forth() -> Stuck:
    go = [
        call(thought, "click", "Page: Basket (0 items). Links: Home, Offers", element="#basket")
        for thought in (
            "Opening the basket.",
            "Is it in the basket now?",
            "The basket should have it.",
            "Basket again.",
        )
    ]
    back = [
        call(thought, "click", "Page: Lamp 'Luna'. Button: Add (disabled)", element="#back")
        for thought in ("It is empty, going back.", "Empty; back to the lamp.", "Back to add it.", "Back.")
    ]
    turns = [step for pair in zip(go, back, strict=True) for step in pair]
    return Stuck(
        task="Order one lamp 'Luna' in white",
        before=[call("The shop first.", "goto", "Page: Lamp 'Luna'. Button: Add (disabled)", url="/luna")],
        stuck=turns,
        plain_at=5,
    )


@LOOPS
def a_service_agent_goes_round_three_calls() -> Stuck:
    rounds = ["", "Let me begin from the start.", "Something is missing, again from the top.", "Once more."]
    turns = []
    for opening in rounds:
        turns.append(call(opening or "Which plans are there?", "list_plans", {"plans": ["basic", "pro"]}))
        turns.append(call("What does the account have?", "get_account", {"id": 41, "plan": "basic"}, id=41))
        turns.append(
            call("Is a change allowed?", "check_change", {"allowed": False, "reason": "contract"}, id=41, plan="pro")
        )
    return Stuck(task="Move account 41 to the pro plan", stuck=turns, plain_at=8)


@LOOPS
def a_shell_agent_goes_round_three_commands() -> Stuck:
    turns = []
    for n in range(4):
        turns.append(
            bash(
                ["The service doesn't answer; is it up?", "Is it up now?", "And now?", "Status once more."][n],
                "systemctl is-active gateway",
                "failed",
            )
        )
        turns.append(
            bash(
                ["Restarting it.", "I restart it.", "A restart may help.", "Restart."][n],
                "systemctl restart gateway",
                "Job for gateway.service failed because the control process exited with error code.",
            )
        )
        turns.append(
            bash(
                ["What does the log say?", "The log?", "Looking into the log.", "Log."][n],
                "journalctl -u gateway -n 2 --no-pager -o cat",
                "bind: address already in use\ngateway.service: Failed with result 'exit-code'.",
            )
        )
    return Stuck(task="The gateway is down, bring it back", stuck=turns, plain_at=8)
