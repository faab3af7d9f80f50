"""Legitimate work of agents whose actions take plain text, as ReAct agents write them."""

# One step of a trajectory is one line, however long, so that a run reads from top to bottom.
# ruff: noqa: E501

from __future__ import annotations

from tests.core.monitors.trajectories import Fair, Shelf, react, say

__all__ = ["FAIR"]

FAIR: Shelf[Fair] = Shelf()


@FAIR
def a_react_agent_looks_up_the_next_passage_of_a_page() -> Fair:
    passages = "was laid down in 1911|was launched in 1913|served as a hospital ship|struck a mine off Kea|sank in 55 minutes|lies at 122 metres".split("|")  # fmt: skip
    steps = [react("I need the page about the ship first.", "Search", "HMHS Britannic", "HMHS Britannic was the third of the Olympic class.")]  # fmt: skip
    for n, passage in enumerate(passages):
        steps.append(react("That isn't about its loss yet." if n < 3 else "Closer; the next mention.", "Lookup", "Britannic", f"(Result {n + 1} / 6) Britannic {passage}."))  # fmt: skip
    return Fair(
        "How deep does HMHS Britannic lie?", [*steps, react("That is it.", "Finish", "122 metres", "Answer accepted.")]
    )


@FAIR
def a_react_agent_searches_different_people_some_unknown() -> Fair:
    found = [
        ("Marta Oliveira Prado", "Could not find Marta Oliveira Prado. Similar: ['Prado Museum', 'Oliveira']."),
        ("Rio Verde Film Festival", "The Rio Verde Film Festival was founded in 1987 by four friends."),
        ("Jonas Falkenberg", "Could not find Jonas Falkenberg. Similar: ['Falkenberg', 'Jonas']."),
        ("Lídia Santoro", "Lídia Santoro (born 1951) is a Brazilian film editor."),
        ("Teo Almeida (director)", "Could not find Teo Almeida (director). Similar: ['Almeida']."),
        ("Lídia Santoro filmography", "Her first film as editor was Águas (1979), directed by Teo Almeida."),
    ]
    thoughts = [
        "One of the founders may have a page.", "No page of hers. The festival itself then.", "The second founder.",
        "No page either. The third.", "She has one. And the fourth?", "None, but her filmography may name him.",
    ]  # fmt: skip
    steps = [react(thought, "Search", query, said) for thought, (query, said) in zip(thoughts, found, strict=True)]
    return Fair(
        "Which founder of the Rio Verde Film Festival directed Águas?", [*steps, say("Teo Almeida directed Águas.")]
    )


@FAIR
def a_react_agent_checks_a_pump_until_the_tank_is_full() -> Fair:
    steps = [react("I start the pump.", "Pump", "on", "The pump is on.")]
    for n in range(7):
        steps.append(react(["Filling takes a while.", "Not full yet.", "I go on waiting."][n % 3], "Sensor", "tank", "filling in progress"))  # fmt: skip
    steps.append(react("Again.", "Sensor", "tank", "tank full"))
    steps.append(react("Full, so the pump goes off.", "Pump", "off", "The pump is off."))
    return Fair("Fill the tank", steps)


@FAIR
def a_react_agent_rolls_a_die_five_times_as_asked() -> Fair:
    steps = [react(f"Roll {n} of 5.", "Roll", "d6", f"{face}") for n, face in enumerate((4, 4, 4, 1, 4), 1)]
    return Fair("Roll the die five times and give the sum", [*steps, say("4 + 4 + 4 + 1 + 4 is 17.")])


@FAIR
def a_react_agent_asks_a_slow_server_again() -> Fair:
    return Fair(
        "What is the population of Tuvalu?",
        [
            react("I ask the data service.", "Fetch", "https://data.example/tuvalu", "Error: timed out after 30 s"),
            react("It timed out; such a service is often slow on the first request.", "Fetch", "https://data.example/tuvalu", "Error: timed out after 30 s"),
            react("Once more.", "Fetch", "https://data.example/tuvalu", "population: 10,679 (2022)"),
            react("There it is.", "Finish", "10,679", "Answer accepted."),
        ],
    )  # fmt: skip


@FAIR
def a_react_agent_adds_similar_items_and_reads_the_list_after_each() -> Fair:
    names = "milk bread eggs apples rice coffee".split()
    steps = []
    for n, name in enumerate(names, 1):
        steps.append(react(f"{name.title()} goes on the list.", "Add", name, "ok"))
        steps.append(react("What is on it?", "Show", "list", ", ".join(names[:n])))
    return Fair("Write the shopping list: milk, bread, eggs, apples, rice, coffee", steps)


@FAIR
def a_react_agent_corrects_its_value_after_a_better_source() -> Fair:
    return Fair(
        "How tall is Mount Logan?",
        [
            react("An encyclopedia should know.", "Search", "Mount Logan", "Mount Logan, 6,050 m by the survey of 1925."),
            react("Mount Logan is 6,050 m tall by an old survey. Is there a newer one?", "Search", "Mount Logan GPS survey 1992", "The expedition of 1992 measured 5,959 m."),
            react("The newer survey used GPS, so the height is 5,959 m and not the 6,050 m of 1925.", "Finish", "5,959 m", "Answer accepted."),
        ],
    )  # fmt: skip


@FAIR
def an_agent_asks_its_user_for_one_detail_after_the_other() -> Fair:
    asks = "Which city do you leave from?|On which day would you like to travel?|How many passengers are there?|Do you have any luggage to check in?|Would you like a seat by the window?|May I have your name as in the passport?|And your date of birth?|Is the e-mail address in your profile still right?|Which of the cards in your profile shall I charge?|Shall I book it like this?"
    steps = [say(ask) for ask in asks.split("|")]
    book = react("The user agreed.", "Book", "BER-OPO 2024-06-03, 1 adult, window", "Booked: ref ZK4M2P")
    check = react("Is it in the system?", "Booking", "ZK4M2P", "BER-OPO 2024-06-03, seat 11A, confirmed")
    return Fair("I want to fly to Porto", [*steps, book, check, say("Booked: ZK4M2P, seat 11A by the window.")])
