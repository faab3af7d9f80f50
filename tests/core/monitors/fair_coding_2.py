"""Legitimate work of a coding agent with a shell: reproducing, checking, computing, long runs."""

# One step of a trajectory is one line, however long, so that a run reads from top to bottom.
# ruff: noqa: E501

from __future__ import annotations

from reasonblocks.types import JSON, Step
from tests.core.monitors.trajectories import Fair, Shelf, bash, call, say

__all__ = ["FAIR"]

FAIR: Shelf[Fair] = Shelf()


@FAIR
def a_shell_agent_reproduces_the_bug_before_it_fixes_it() -> Fair:
    trace = 'Traceback (most recent call last):\n  File "/repo/repro.py", line 6, in <module>\n    print(slugify("İstanbul"))\n  File "/repo/slug/core.py", line 41, in slugify\n    return table[char]\nKeyError: \'i̇\''  # fmt: skip
    return Fair(
        "slugify raises KeyError for Turkish dotted capital I. Fix it.",
        [
            bash("I'll write a script that shows the bug first.", "cat > repro.py <<'E'\nfrom slug.core import slugify\nprint(slugify('İstanbul'))\nE\npython repro.py", trace),
            bash("Reproduced. Where does the table come from?", "sed -n 25,48p slug/core.py", "def slugify(text):\n    for char in text.lower():\n        return table[char]"),
            bash("lower() turns it into two code points. To be sure I print them.", "sed -i '40a\\    print([hex(ord(c)) for c in text.lower()])' slug/core.py && python repro.py", "['0x69', '0x307', '0x73']\n" + trace),
            call("Confirmed: the combining dot U+0307 is not in the table. Normalise to NFKD and drop combining marks.", "str_replace_editor", "The file /repo/slug/core.py has been edited.", command="str_replace", path="/repo/slug/core.py", old_str="text.lower()", new_str="fold(text)"),
            bash("Does the script still fail?", "python repro.py", "NameError: name 'fold' is not defined"),
            call("I forgot the helper itself.", "str_replace_editor", "The file /repo/slug/core.py has been edited.", command="insert", path="/repo/slug/core.py", insert_line=3, new_str="def fold(text): ..."),
            bash("Again.", "python repro.py", "istanbul"),
            bash("Fixed for the reported case; the whole suite then.", "pytest -q", "61 passed in 1.12s"),
            say("The fix is done: combining marks are dropped before the lookup, and all 61 tests pass."),
        ],
    )  # fmt: skip


@FAIR
def a_shell_agent_verifies_a_finished_thing_a_second_time() -> Fair:
    return Fair(
        "Make `report --since` accept ISO weeks",
        [
            bash(
                "Where is the option parsed?", "grep -n since cli/report.py", "18:    since: str = option(default='1d')"
            ),
            bash(
                "", "sed -i '18s/.*/    since: Since = option(default=\"1d\", parser=parse_since)/' cli/report.py", ""
            ),
            bash("Testing that.", "pytest tests/cli -q", "27 passed in 2.03s"),
            bash(
                "Passing. What did I change, all in all?", "git diff --stat", " cli/report.py | 2 +-\n 1 file changed"
            ),
            bash("A last run of the tests before I call it done.", "pytest tests/cli -q", "27 passed in 1.98s"),
            say("Done: `report --since 2024-W07` works, the 27 tests of the command line pass."),
            say("You're welcome! If you want ISO week dates with a weekday too, that would be a small addition."),
        ],
    )


@FAIR
def a_shell_agent_watches_a_long_training_whose_results_grow() -> Fair:
    steps = [bash("Starting the training in the background.", "nohup python train.py --epochs 15 > train.log 2>&1 &", "[1] 40712")]  # fmt: skip
    for epoch in range(1, 16):
        line = f"epoch {epoch:02d}/15 loss {2.1 / epoch:.3f} acc {1 - 0.6 / epoch:.3f}"
        steps.append(bash("" if epoch % 3 else f"Epoch {epoch} is through.", "sleep 60; tail -n 1 train.log", line))
    return Fair("Train the classifier for 15 epochs and report the accuracy", steps)


@FAIR
def a_shell_agent_greps_for_different_terms_and_finds_few() -> Fair:
    looks = [
        ("The message could be a literal.", "grep -rn 'quota exceeded' src", ""),
        ("It may be a translation key.", "grep -rn 'limits.storage' locales/", ""),
        ("Nothing. Which HTTP status comes with it? 507 perhaps.", "grep -rnw 507 src", "src/http/codes.go:88:\tInsufficientStorage = 507"),
        ("And who uses that constant?", "grep -rn InsufficientStorage src", "src/http/codes.go:88:\tInsufficientStorage = 507"),
        ("Only its definition. Then the proxy answers it: look into the chart.", "grep -rn 'client_max_body_size' deploy", ""),
        ("Not nginx. The bucket policy?", "find deploy -name '*.tf' | xargs grep -ln quota", "deploy/bucket.tf"),
        ("There it is.", "cat deploy/bucket.tf", 'resource "bucket" "uploads" {\n  quota = "20Gi"\n}'),
    ]  # fmt: skip
    return Fair("Uploads fail with 'quota exceeded'. Find where the limit is set.", [bash(*look) for look in looks])


@FAIR
def a_shell_agent_corrects_a_number_and_says_why() -> Fair:
    return Fair(
        "How many public functions of the library lack a docstring?",
        [
            bash("Counting definitions without a docstring on the next line.", "python tools/missing_docs.py", "412"),
            bash("The answer would be 412. But that counts tests too, I think; which folders are in it?", "python tools/missing_docs.py --by-folder", "src 389\ntests 23"),
            say("I said 412 before; that included 23 functions of tests/, which are not public. The correct number is 389."),
        ],
    )  # fmt: skip


@FAIR
def a_shell_agent_writes_a_table_into_its_thought() -> Fair:
    rows = "\n".join(f"| bench_{n:02d} | {1.5 + n / 10:.2f} ms | {1.4 + n / 10:.2f} ms | ok |" for n in range(24))
    table = (
        f"Results so far:\n\n| benchmark | before | after | verdict |\n|---|---|---|---|\n{rows}\n\nNothing got slower."
    )
    return Fair(
        "Compare the benchmarks before and after the allocator change",
        [
            bash("Baseline first.", "git stash -q; ./bench --json > before.json; git stash pop -q", ""),
            bash("Now with the change.", "./bench --json > after.json", ""),
            bash(table, "python tools/compare.py before.json after.json", "24 benchmarks, 0 regressions"),
            say(table),
        ],
    )


TOUR = [
    ("{m} has a handler of its own; reading it.", "cat api/{m}.py", "class {M}Handler:\n    route = '/{m}'\n    # {n} lines"),
    ("Which tests cover it?", "ls tests/api/{m}", "test_{m}_get.py\ntest_{m}_post.py"),
    ("The handler for {m} takes the request as a dict. I type it.", "sed -i 's/request: dict/request: {M}Request/' api/{m}.py", ""),
    ("", "cat >> api/models.py <<'E'\nclass {M}Request(BaseModel):\n    id: int\nE", ""),
    ("Only the tests for {m} now, the whole suite at the end.", "pytest tests/api/{m} -q", "{n} passed in 0.{n}s"),
    ("{m} is typed.", "git add -A && git commit -qm 'Type the {m} handler'", ""),
]  # fmt: skip


def tour(parts: list[str]) -> list[Step]:
    """Six different steps for each part of an API."""
    return [
        bash(*[text.format(m=part, M=part.title(), n=11 + 3 * at) for text in row])
        for at, part in enumerate(parts)
        for row in TOUR
    ]


@FAIR
def a_shell_agent_does_sixty_different_good_steps() -> Fair:
    parts = "users orders carts prices stock refunds coupons reviews sellers".split()
    end = [
        bash("All nine handlers are typed. The full suite.", "pytest -q", "402 passed in 21.60s"),
        bash("And the type checker.", "mypy api", "Success: no issues found in 19 source files"),
        bash("The changelog wants a line.", "sed -i '5a- Handlers take typed requests.' CHANGELOG.md", ""),
        bash("", "git commit -qam 'Changelog'; git push -u origin typed-handlers", "branch 'typed-handlers' set up to track"),
        bash("Now the pull request.", "gh pr create --fill --base main", "https://github.com/acme/shop/pull/311"),
        bash("Its checks?", "gh pr checks 311", "lint pass 41s\ntests pass 2m3s"),
        say("All nine API handlers take typed requests; the pull request is #311 and its checks pass."),
    ]  # fmt: skip
    return Fair("Type the request argument of every API handler and open a pull request", [*tour(parts), *end])


def _status(at: int, now: int) -> str:
    return "completed" if at < now else "in_progress" if at == now else "pending"


@FAIR
def a_coding_agent_ticks_off_its_list_of_things_to_do() -> Fair:
    todos = ["Find the flag", "Add --dry-run", "Pass it down", "Write a test", "Document it"]
    work = [
        bash("First the place where flags are defined.", "grep -n add_argument sync/cli.py", "22:    p.add_argument('--force')"),
        bash("Here is where it goes.", "sed -i \"22a\\    p.add_argument('--dry-run', action='store_true')\" sync/cli.py", ""),
        bash("The runner needs to know it too.", "sed -i 's/run(args.force)/run(args.force, args.dry_run)/' sync/cli.py", ""),
        bash("Now a test that nothing is written.", "cat > tests/test_dry.py <<'E'\ndef test_dry(): ...\nE\npytest -q", "33 passed in 0.61s"),
        bash("And a paragraph in the manual.", "echo '--dry-run shows what would be done.' >> docs/sync.md", ""),
    ]  # fmt: skip
    steps = []
    for n, step in enumerate(work):
        ticked: JSON = [{"content": what, "status": _status(at, n)} for at, what in enumerate(todos)]
        steps.append(call("", "TodoWrite", "Todos have been modified successfully.", todos=ticked))
        steps.append(step)
    end = bash(
        "Everything once more, with the manual's doctests.", "pytest -q --doctest-glob='*.md'", "35 passed in 0.70s"
    )
    return Fair(
        "Give `sync` an option --dry-run", [*steps, end, say("`sync --dry-run` is there, tested and documented.")]
    )


@FAIR
def a_coding_agent_writes_down_its_thoughts_with_a_tool() -> Fair:
    thoughts = [
        "The deadlock needs two locks taken in different order; where are two taken at all?",
        "Pool.acquire takes the pool lock and then the connection's. Who takes the connection's first?",
        "Connection.close does, and it then calls Pool.release. So close must not hold its lock there.",
        "Releasing after the with block would do; the state flag has been set by then.",
    ]
    looks = [
        ("grep -n 'with .*lock' db/*.py", "db/conn.py:31: with self._lock:\ndb/pool.py:14: with self._lock:"),
        ("sed -n 25,44p db/conn.py", "def close(self):\n    with self._lock:\n        self.pool.release(self)"),
        ("sed -i '33s/^        //' db/conn.py", ""),
        ("timeout 60 pytest tests/db -q", "48 passed in 3.30s"),
    ]
    steps = []
    for thought, look in zip(thoughts, looks, strict=True):
        steps.append(call("", "think", "Your thought has been logged.", thought=thought))
        steps.append(bash("", *look))
    return Fair(
        "The connection pool deadlocks on close. Fix it.",
        [*steps, say("close() releases after its lock now; all 48 tests pass.")],
    )


@FAIR
def the_same_green_tests_after_each_step_of_a_refactoring() -> Fair:
    steps = []
    for n in range(9):
        thought = f"Refactor coupon step {n}: move the discount into its own function."
        done = "The file /repo/cart.py has been edited."
        steps.append(call(thought, "str_replace", done, path="cart.py", old=f"a{n}", new=f"b{n}"))
        steps.append(bash("Still green?", "pytest -q tests/test_cart.py", f"37 passed in 0.{n}1s"))
    return Fair("Refactor the cart module into small functions; run the tests after every edit.", steps)


@FAIR
def the_same_clean_type_check_after_each_file() -> Fair:
    steps = []
    for n in range(5):
        path = f"cart/p{n}.py"
        steps.append(call(f"Annotate part {n} of the cart.", "edit_file", "Edited.", path=path, new=f"x: int = {n}"))
        steps.append(bash("", "mypy cart", "Success: no issues found in 12 source files"))
    return Fair("Annotate the cart package; mypy after each file.", steps)
