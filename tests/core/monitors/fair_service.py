"""Legitimate work of agents with functions, queries and web services: waiting, batches, searches."""

# One step of a trajectory is one line, however long, so that a run reads from top to bottom.
# ruff: noqa: E501

from __future__ import annotations

from reasonblocks.types import JSON
from tests.core.monitors.trajectories import Fair, Shelf, bash, call, say

__all__ = ["FAIR"]

FAIR: Shelf[Fair] = Shelf()


@FAIR
def a_service_agent_polls_an_export_until_it_is_ready() -> Fair:
    steps = [call("Starting the export.", "start_export", {"job_id": "exp-2291"}, table="orders", since="2024-01-01")]
    for n in range(8):
        thought = ["Queued behind other exports; I ask again in a bit.", "Let me check whether it has started.", ""][
            n % 3
        ]
        steps.append(call(thought, "get_export", {"job_id": "exp-2291", "state": "QUEUED"}, job_id="exp-2291"))
    for percent in (10, 35, 60, 85):
        steps.append(call("It is running now." if percent == 10 else "", "get_export", {"job_id": "exp-2291", "state": "RUNNING", "percent": percent}, job_id="exp-2291"))  # fmt: skip
    steps.append(call("Nearly there.", "get_export", {"job_id": "exp-2291", "state": "DONE", "url": "s3://exports/exp-2291.csv"}, job_id="exp-2291"))  # fmt: skip
    return Fair("Export all orders of this year and send me the link", [*steps, say("The export is ready: s3://exports/exp-2291.csv")])  # fmt: skip


@FAIR
def a_service_agent_changes_a_mapping_while_its_violations_fall() -> Fair:
    fixes = [
        ("country", "ISO-3166"),
        ("birthday", "date"),
        ("zip", "string"),
        ("vat_id", "nullable"),
        ("phone", "E.164"),
    ]
    steps = [call("How does the mapping do as it is?", "validate_mapping", {"valid": False, "violations": 9410}, is_error=True, mapping="crm-to-erp")]  # fmt: skip
    for (column, kind), left in zip(fixes, [7102, 3305, 1200, 18, 0], strict=True):
        steps.append(call(f"Most violations are about {column}, which should be {kind}.", "update_mapping", {"ok": True}, mapping="crm-to-erp", column=column, type=kind))  # fmt: skip
        steps.append(call("Validating again.", "validate_mapping", {"valid": not left, "violations": left}, is_error=left > 0, mapping="crm-to-erp"))  # fmt: skip
    return Fair("Repair the crm-to-erp mapping until it validates", steps)


@FAIR
def a_service_agent_gives_twelve_products_the_same_discount() -> Fair:
    steps = [
        call("" if n else "Twelve products; I set them one by one.", "update_product", {"id": f"SKU-{3100 + n}", "status": "updated"}, product_id=f"SKU-{3100 + n}", discount_percent=15)
        for n in range(12)
    ]  # fmt: skip
    check = call("Are all of them at 15 percent?", "query_products", {"count": 12}, filter="discount_percent = 15")
    return Fair("Set the discount of the twelve winter jackets to 15 percent", [*steps, check])


@FAIR
def a_service_agent_goes_through_the_pages_of_a_list() -> Fair:
    steps = []
    for page in range(1, 10):
        tickets: JSON = [
            {"id": 7000 + 10 * page + k, "subject": s} for k, s in enumerate(("Login", "Refund", "Delivery"))
        ]
        steps.append(call(f"Page {page} of 9." if page % 2 else "", "list_tickets", {"tickets": tickets, "page": page}, status="open", page=page))  # fmt: skip
    return Fair(
        "How many open tickets are about refunds?", [*steps, say("Nine of the 27 open tickets are about refunds.")]
    )


@FAIR
def a_service_agent_looks_at_thirty_similar_orders() -> Fair:
    steps = [
        call("", "get_order", {"order": f"#W{48100 + 7 * n}", "status": "delivered", "items": 1 + n % 4}, order_id=f"#W{48100 + 7 * n}")
        for n in range(30)
    ]  # fmt: skip
    return Fair("Which of the customer's orders were not delivered?", [*steps, say("All 30 orders were delivered.")])


@FAIR
def a_service_agent_retries_a_payment_query_after_a_bad_gateway() -> Fair:
    lost = "HTTP 503: upstream connect error or disconnect before headers"
    ask: dict[str, JSON] = {"payment_id": "pay_81a"}
    return Fair(
        "Was payment pay_81a captured?",
        [
            call("I look the payment up.", "get_payment", lost, is_error=True, payment_id="pay_81a"),
            call("A 503 is temporary, so I ask once more.", "get_payment", lost, is_error=True, payment_id="pay_81a"),
            call("", "get_payment", {**ask, "status": "captured", "amount": "49.90"}, is_error=False, payment_id="pay_81a"),
            say("Yes: pay_81a over 49.90 was captured."),
        ],
    )  # fmt: skip


@FAIR
def a_service_agent_asks_for_the_same_quote_five_times_as_the_user_wished() -> Fair:
    rank = ["first", "second", "third", "fourth", "fifth"]
    quote: JSON = {"pair": "EURUSD", "bid": 1.0841, "ask": 1.0843}
    asks = [call(f"This is the {rank[n]} of the five quotes.", "get_quote", quote, pair="EURUSD") for n in range(5)]
    task = "Please call get_quote for EURUSD 5 times in a row and tell me whether the answers differ."
    return Fair(task, [*asks, say("All five answers were equal: 1.0841 / 1.0843.")])


@FAIR
def a_service_agent_reads_a_booking_again_after_each_change() -> Fair:
    steps = []
    seats = ["14C", "14D", "15A", "15B"]
    for n, seat in enumerate(seats):
        steps.append(call("What does the booking look like now?", "get_booking", {"ref": "QX81LM", "seats": seats[:n]}, ref="QX81LM"))  # fmt: skip
        steps.append(call(f"Passenger {n + 1} gets {seat}.", "assign_seat", {"ok": True}, ref="QX81LM", passenger=n + 1, seat=seat))  # fmt: skip
    steps.append(call("And in the end?", "get_booking", {"ref": "QX81LM", "seats": seats}, ref="QX81LM"))
    return Fair("Assign neighbouring seats to the four passengers of QX81LM", steps)


@FAIR
def a_service_agent_imports_batches_without_errors() -> Fair:
    said = ["0 errors, 500 rows imported", "500 rows imported, no exception", "errors: 0, rows: 500", "import succeeded, error: none"]  # fmt: skip
    steps = [call("It worked, the next batch." if n else "The first batch.", "import_batch", f"batch {n + 1}: {said[n % 4]}", file=f"customers_{n + 1:02d}.csv") for n in range(8)]  # fmt: skip
    check = call("Is everything there?", "run_sql", "count\n4000", query="SELECT count(*) FROM customers")
    return Fair("Import the eight customer files", [*steps, check, say("All 4,000 customers were imported, 0 errors.")])


@FAIR
def a_service_agent_creates_twenty_similar_invoices() -> Fair:
    steps = [
        call("", "create_invoice", {"invoice_id": f"INV-2024-{900 + n}", "status": "draft"}, customer_id=f"C{120 + n}", amount="120.00", memo="Annual maintenance")
        for n in range(20)
    ]  # fmt: skip
    check = call("How many drafts are there now?", "list_invoices", {"drafts": 20}, status="draft")
    return Fair("Draft the annual maintenance invoice for each of the 20 customers", [*steps, check])


@FAIR
def a_service_agent_searches_different_terms_some_of_them_in_vain() -> Fair:
    asks: list[tuple[str, str, list[str]]] = [
        ("Does the knowledge base speak of two-factor resets?", "two-factor reset", []),
        ("Maybe under the name of the app.", "Authenticator lost phone", ["KB-311 Moving to a new phone"]),
        ("That's for a planned move. Recovery codes?", "recovery codes", []),
        ("Support might have an internal procedure.", "identity check by support", []),
        ("Let me try the admin's side.", "admin console disable second factor", ["KB-87 Resetting a member's sign-in"]),
    ]  # fmt: skip
    steps = [call(thought, "search_kb", {"hits": hits}, query=query) for thought, query, hits in asks]
    read = call("KB-87 it is.", "get_article", "Open Members, choose the member, press Reset sign-in.", id="KB-87")
    return Fair("A member lost the phone with the second factor. What can we do?", [*steps, read])


@FAIR
def a_service_agent_verifies_a_change_twice() -> Fair:
    booked: dict[str, JSON] = {"ref": "H-5521", "check_in": "2024-06-03", "nights": 4}
    return Fair(
        "Move reservation H-5521 to the 3rd of June",
        [
            call("First the reservation as it is.", "get_reservation", {**booked, "check_in": "2024-06-01"}, ref="H-5521"),
            call("The room is free; moving it.", "update_reservation", {"ok": True}, ref="H-5521", check_in="2024-06-03"),
            call("Did it take?", "get_reservation", booked, ref="H-5521"),
            call("The guest wants it in writing.", "send_confirmation", {"sent": True}, ref="H-5521"),
            call("One last look, so that the mail says the truth.", "get_reservation", booked, ref="H-5521"),
            say("Your reservation H-5521 now begins on the 3rd of June; the confirmation is on its way."),
            say("With pleasure. Enjoy your stay!"),
        ],
    )  # fmt: skip


@FAIR
def a_service_agent_watches_a_simulation_whose_results_grow() -> Fair:
    steps = [call("" if n % 4 else f"{n} thousand paths so far.", "run_paths", {"paths": 1000 * (n + 1), "mean": round(10.4 + 0.31 / (n + 1), 4), "stderr": round(0.9 / (n + 1) ** 0.5, 4)}, model="heston", paths=1000) for n in range(16)]  # fmt: skip
    return Fair("Simulate until the standard error is below 0.23", [*steps, say("Mean 10.42, standard error 0.225.")])


@FAIR
def a_sql_agent_corrects_a_number_and_says_why() -> Fair:
    return Fair(
        "What was the revenue of March?",
        [
            call("Summing the invoices of March.", "run_sql", "sum\n18420.50", query="SELECT sum(total) FROM invoices WHERE month = '2024-03'"),
            call("The revenue is 18420.50, unless credit notes are in there as well.", "run_sql", "kind | n\ninvoice | 96\ncredit | 7", query="SELECT kind, count(*) n FROM invoices WHERE month = '2024-03' GROUP BY kind"),
            call("They are: seven credit notes with a positive total, which have to be subtracted.", "run_sql", "sum\n17110.00", query="SELECT sum(CASE kind WHEN 'credit' THEN -total ELSE total END) FROM invoices WHERE month = '2024-03'"),
            say("The revenue of March is 17,110.00. The 18,420.50 that I had at first counted credit notes as income."),
        ],
    )  # fmt: skip


@FAIR
def a_web_agent_reproduces_a_server_error_before_the_fix() -> Fair:
    broken = "HTTP 500 Internal Server Error: division by zero in discount()"
    return Fair(
        "Checkout answers 500 for empty carts. Reproduce it, then change the rule that causes it.",
        [
            call("First I reproduce it.", "http_post", broken, is_error=True, url="/checkout", body={"items": []}),
            call("With one item it should work.", "http_post", {"total": "9.90"}, is_error=False, url="/checkout", body={"items": [7]}),
            call("And an empty cart without a coupon?", "http_post", broken, is_error=True, url="/checkout", body={"items": [], "coupon": None}),
            call("So it is the average in the discount rule.", "get_rule", {"rule": "discount", "expr": "total / count"}, name="discount"),
            call("", "set_rule", {"ok": True}, is_error=False, name="discount", expr="total / max(count, 1)"),
            call("Now the request that failed.", "http_post", {"total": "0.00"}, is_error=False, url="/checkout", body={"items": []}),
            say("An empty cart now totals 0.00 and no longer answers 500."),
        ],
    )  # fmt: skip


@FAIR
def a_support_agent_answers_twenty_tickets_in_sixty_steps() -> Fair:
    about = "login refund delivery invoice password address coupon size colour warranty return gift newsletter points store pickup payment tax repair manual".split()  # fmt: skip
    steps = []
    for n, topic in enumerate(about):
        ticket = f"T-{600 + 3 * n}"
        steps.append(call("" if n % 3 else f"{20 - n} tickets are left.", "get_ticket", {"id": ticket, "text": f"I have a question about {topic}.", "customer": 90 + n}, id=ticket))  # fmt: skip
        steps.append(call(f"What does our handbook say of {topic}?", "search_kb", {"hits": [f"KB-{30 + n} {topic.title()}"]}, query=topic))  # fmt: skip
        steps.append(call(f"Answering with KB-{30 + n}.", "reply", {"id": ticket, "state": "answered"}, id=ticket, article=f"KB-{30 + n}"))  # fmt: skip
    return Fair("Answer the twenty tickets of today's queue from the handbook", steps)


@FAIR
def an_agent_with_two_tools_copies_a_table_row_by_row() -> Fair:
    rows = [("Ada", "0171"), ("Ben", "0172"), ("Cem", "0173"), ("Dia", "0174"), ("Eva", "0175"), ("Finn", "0176")]
    table = "| name | phone |\n|---|---|\n" + "\n".join(f"| {name} | {phone} |" for name, phone in rows)
    steps = [call(table if not n else "", "add_contact", {"id": 50 + n}, name=name, phone=phone) for n, (name, phone) in enumerate(rows)]  # fmt: skip
    shown = bash("Is the book complete?", "contacts list --count", "6")
    return Fair("Put these six people into my address book", [*steps, shown, say(table)])


@FAIR
def people_are_looked_for_one_by_one_and_none_is_known() -> Fair:
    names = ["Ann Lee", "Bob Ray", "Carl Moe", "Dina Fox", "Eve Poe", "Finn Roe", "Gus Tao"]
    steps = [
        call(
            f"Next: {name}.",
            "search_customers",
            {"customers": []},
            first_name=name.split()[0],
            last_name=name.split()[1],
            country="Germany",
            status="active",
        )
        for name in names
    ]
    return Fair(f"Which of these people are in the customer register? {', '.join(names)}", steps)


@FAIR
def each_year_is_asked_for_and_none_has_any() -> Fair:
    steps = [
        call("Next year.", "list_invoices", {"invoices": []}, year=year, status="overdue") for year in range(2015, 2024)
    ]
    return Fair("List every overdue invoice since 2015.", steps)


@FAIR
def a_browsing_agent_scrolls_and_tabs_to_what_it_looks_for() -> Fair:
    return Fair(
        "Order the large green mug from the shop page",
        [
            call("The list of mugs is further down.", "scroll", "ok", direction="down"),
            call("Not there yet.", "scroll", "ok", direction="down"),
            call("A little more.", "scroll", "ok", direction="down"),
            call("What is in view now?", "read_page", "Mugs: small blue, small green, large blue, large green", region="viewport"),
            call("The large green one is the fourth.", "press_key", "pressed", key="Tab"),
            call("", "press_key", "pressed", key="Tab"),
            call("", "press_key", "pressed", key="Enter"),
            call("Is it in the basket?", "read_page", "Basket: 1 x large green mug, 14.00", region="basket"),
            say("The large green mug is in the basket."),
        ],
    )  # fmt: skip
