"""Trouble that leads nowhere: known things read again, new ground late, another subject."""

# One step of a trajectory is one line, however long, so that a run reads from top to bottom.
# ruff: noqa: E501

from __future__ import annotations

from tests.core.monitors.fair_coding_2 import tour
from tests.core.monitors.trajectories import Shelf, Stuck, bash, call

__all__ = ["WANDERING"]

WANDERING: Shelf[Stuck] = Shelf()


@WANDERING
def a_coding_agent_reads_known_files_again_unchanged() -> Stuck:
    names = "app models views urls forms signals admin tasks".split()
    text = {name: f"# {name}.py\nfrom django.db import {name}\n\nclass {name.title()}Config: ...\n" for name in names}
    known = [
        call(f"Let me read {name}.py." if n % 2 else "", "read_file", text[name], path=f"shop/{name}.py")
        for n, name in enumerate(names)
    ]
    again = [
        call(thought, "read_file", text[name], path=f"shop/{name}.py")
        for name, thought in [
            ("forms", "I want to see the forms."),
            ("app", "Let me look at the app's configuration."),
            ("tasks", "What did the tasks look like?"),
            ("models", "The models matter here."),
            ("admin", "I should understand the admin."),
            ("views", "Reading the views."),
            ("urls", "And the routes."),
        ]
    ]
    return Stuck(
        task="Send the confirmation mail after checkout in the background",
        before=known,
        stuck=again,
        failure_type="churn",
    )


@WANDERING
def a_sql_agent_asks_for_known_facts_again() -> Stuck:
    tables = {
        "users": "id, name, country",
        "orders": "id, user_id, total",
        "items": "id, order_id, sku",
        "stock": "sku, amount",
        "refunds": "order_id, total",
        "mails": "id, user_id",
    }
    ask = [call(f"The columns of {name}.", "describe_table", columns, table=name) for name, columns in tables.items()]
    thoughts = [
        "Which columns had orders?",
        "I need the schema of stock.",
        "Let me look at the users' columns.",
        "And refunds?",
        "The schema of mails.",
        "What was in items?",
    ]
    order = ["orders", "stock", "users", "refunds", "mails", "items"]
    again = [
        call(thought, "describe_table", tables[name], table=name) for thought, name in zip(thoughts, order, strict=True)
    ]
    return Stuck(task="Which country has the most refunds?", before=ask, stuck=again, failure_type="churn")


@WANDERING
def a_coding_agent_writes_the_same_plan_again() -> Stuck:
    plan = "Plan: 1. find the serializer that drops the time zone, 2. write a failing test, 3. keep the offset when parsing, 4. run the whole suite, 5. update the documentation."
    places = [
        "api/serializers.py",
        "api/fields.py",
        "core/time.py",
        "core/json.py",
        "api/views.py",
        "core/schema.py",
        "api/compat.py",
        "core/io.py",
    ]
    read = [
        bash(plan, f"sed -n 1,40p {place}", f"# {place}\nimport datetime\n# part {n}") for n, place in enumerate(places)
    ]
    return Stuck(
        task="API times lose their time zone. Fix that.", before=read[:1], stuck=read[1:], failure_type="churn"
    )


@WANDERING
def a_coding_agent_opens_new_ground_late_in_a_run() -> Stuck:
    late = [
        ("Maybe Docker needs a change too.", "docker build -f ops/Dockerfile.alpine .", "Successfully built 81cc0a"),
        ("Let me see what Terraform does.", "terraform -chdir=infra/eu plan", "No changes."),
        ("The Helm chart could be modernised.", "helm lint charts/shop-next", "1 chart(s) linted"),
        ("Is there something in the mobile client?", "npx nx graph apps/mobile/project.json", "graph written"),
        ("And the notebooks?", "jupyter nbconvert research/pricing.ipynb", "Converting notebook"),
        ("Perhaps a benchmark in Rust.", "cargo init experiments/fastprice", "Created binary package"),
        ("The wiki could be generated.", "mkdocs new wiki/handbook.yml", "Creating project directory"),
        ("Let me try another database.", "psql -f experiments/shard.sql", "CREATE TABLE"),
        ("A dashboard would be nice.", "grafana-cli import boards/orders.json", "imported"),
    ]
    return Stuck(
        task="Type the request argument of every API handler",
        before=tour("users orders carts prices".split()),
        stuck=[bash(*step) for step in late],
        plain_at=5,
        failure_type=("sprawl", "drift"),
    )


@WANDERING
def a_service_agent_opens_new_ground_late_in_a_run() -> Stuck:
    asks = []
    for n in range(14):
        asks.append(
            call("", "get_ticket", {"id": f"T-{40 + n}", "text": f"Question {n} about the bill"}, id=f"T-{40 + n}")
        )
        asks.append(
            call("Answering it.", "reply", {"ok": True, "id": f"T-{40 + n}"}, id=f"T-{40 + n}", article=f"KB-{n}")
        )
    late = [
        ("I could look into the marketing lists.", "list_campaigns", "campaign-spring-24"),
        ("The suppliers may have news.", "get_supplier", "supplier-771"),
        ("Let me see the warehouse cameras.", "camera_feed", "cam-12"),
        ("What do the share prices do?", "stock_quote", "ACME.N"),
        ("The org chart might be of use.", "org_chart", "unit-55"),
        ("And the cantina's menu.", "menu_of_day", "site-3"),
        ("Travel policies, perhaps.", "get_policy", "policy-9"),
        ("Fleet data too.", "vehicle_log", "van-88"),
        ("Energy use as well.", "meter_reading", "meter-4"),
    ]
    new = [
        call(thought, tool, {"found": target, "n": n}, target=target) for n, (thought, tool, target) in enumerate(late)
    ]
    return Stuck(
        task="Answer the fourteen open tickets about bills",
        before=asks,
        stuck=new,
        plain_at=5,
        failure_type=("sprawl", "drift"),
    )


@WANDERING
def a_coding_agent_polishes_the_readme_instead_of_the_parser() -> Stuck:
    before = [
        bash(
            "The date parser rejects leap years. Where does the parser decide that?",
            "grep -n leap dates/parser.py",
            "41:def leap(year):",
        ),
        bash(
            "The leap function of the date parser ignores centuries, so years like 2000 are rejected.",
            "sed -n 38,50p dates/parser.py",
            "def leap(year):\n    return year % 4 == 0 and year % 100",
        ),
        bash(
            "Which tests of the parser speak of leap years already?",
            "grep -n 'leap' tests/test_dates.py",
            "12:def test_leap_1996():",
        ),
    ]
    whats = [
        "badge colours",
        "screenshot of the landing page",
        "logo in the header",
        "fonts of the website",
        "animation of the menu",
        "newsletter banner",
        "social media icons",
        "dark theme of the homepage",
        "contact form layout",
        "footer with the sponsors",
        "cookie notice",
        "favicon",
    ]
    away = [
        bash(
            f"The {what} on the project homepage would look much nicer with a warmer colour and some rounded corners.",
            f"echo '/* {what} */' >> site/style-{n}.css",
            "",
        )
        for n, what in enumerate(whats)
    ]
    return Stuck(
        task="Fix the date parser so that leap years are accepted",
        before=before,
        stuck=away,
        plain_at=7,
        failure_type=("drift", "sprawl"),
    )


@WANDERING
def a_web_agent_reads_about_films_instead_of_the_flight() -> Stuck:
    before = [
        call(
            "I look for flights from Oslo to Lisbon on Friday, the cheapest flight with one bag.",
            "search",
            "12 flights",
            query="flights Oslo Lisbon Friday",
        ),
        call(
            "The cheapest flight to Lisbon leaves Oslo at 06:40; does the fare include a bag?",
            "open",
            "Fare: no bag",
            url="/fare/1",
        ),
    ]
    films = "Metropolis|Stalker|Ran|Playtime|Persona|Mirror|Ikiru|Vertigo|Solaris|Rashomon|Nosferatu|Sunrise".split("|")
    away = [
        call(
            f"I wonder which director made {film}, what the critics wrote about it, and which awards the actors received.",
            "open",
            f"{film} is a film. Critics praised it. No {n}.",
            url=f"/film/{film.lower()}",
        )
        for n, film in enumerate(films)
    ]
    return Stuck(
        task="Book the cheapest flight from Oslo to Lisbon on Friday with one bag",
        before=before,
        stuck=away,
        plain_at=7,
        failure_type=("drift", "sprawl"),
    )
