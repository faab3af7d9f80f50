"""A slow model of threads: replays the feed of all logs, as plain dicts, and checks every line against `statement`.

It knows only the lines and the world that a test declares (actions, the installation's policy), and imports nothing of
the package. `Replay.take` raises AssertionError for a line that the rules forbid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.threads import statement
from tests.threads.statement import CELLS, EARLIEST, HUMAN, STAGES, TERMINAL, Known

Line = Mapping[str, Any]
"""An event as a dict: thread_id, seq, position, kind, actor {kind, name}, at, data, command_id."""

AFTER_THE_END = ("noted", "late_report")
REPAIRS = ("reconciled", "work_dead")


@dataclass
class Matter:
    """A thread as its log alone gives it."""

    id: str
    org_id: str
    title: str
    run_id: str | None
    policy: Mapping[str, Any]
    parent: str | None
    ancestors: tuple[str, ...]
    rule: str
    opened_at: float
    phase: str = "proposed"
    stage: str = "intent"
    version: int = 1
    entered: int = 1
    entered_at: float = 0.0
    deferred_until: float = 0.0
    facts: list[str] = field(default_factory=list)
    fact_seq: int = 0
    """The last line in which a person added a fact or changed a stage."""
    evidence: list[str] = field(default_factory=list)
    proposals: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    made: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    """Every proposal with the line that it came in."""
    approved: Mapping[str, Any] | None = None
    executions: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    approvals: list[str] = field(default_factory=list)
    calls: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    """(calls with repairs, tokens, USD) by call id."""
    admitted: bool = False
    children: dict[str, str | None] = field(default_factory=dict)
    redirects: int = 0
    path: list[tuple[str, str]] = field(default_factory=list)
    """(trigger, phase) of every move."""
    command: str = ""
    lines: list[Line] = field(default_factory=list)
    """The lines of the present command."""
    commands: set[str] = field(default_factory=set)

    cards: list[str] = field(default_factory=list)
    """The ids of all cards, also of those that are closed."""

    @property
    def card(self) -> str | None:
        """The id of the open card."""
        return f"{self.id}.{self.entered}" if self.phase in statement.CARDS else None

    @property
    def ended(self) -> bool:
        return self.phase in TERMINAL

    @property
    def spent(self) -> tuple[int, int, float]:
        booked = [*self.calls.values()]
        return sum(one[0] for one in booked), sum(one[1] for one in booked), sum(one[2] for one in booked)

    def sibling(self, *kinds: str) -> Mapping[str, Any] | None:
        """Return the data of the newest line of these kinds in the present command."""
        found = [line["data"] for line in self.lines if line["kind"] in kinds]
        return found[-1] if found else None


class Replay:
    """The slow model of a store: `known` are the actions, `installation` the policy of all threads."""

    def __init__(self, known: Mapping[str, Known], installation: Mapping[str, Any], *, repairs: bool = False) -> None:
        self.known, self.installation, self.repairs = known, installation, repairs
        self.matters: dict[str, Matter] = {}
        self.position = 0

    def take_all(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self.take(line)

    def take(self, line: Line) -> None:
        assert line["position"] > self.position, "the feed goes back"
        self.position = line["position"]
        data, kind = line["data"], line["kind"]
        if line["seq"] == 1:
            assert kind == "thread_opened", line
            assert line["thread_id"] not in self.matters, line
            self._open(line)
            return
        matter = self.matters[line["thread_id"]]
        assert line["seq"] == matter.version + 1, f"a hole in {matter.id}: {matter.version} then {line['seq']}"
        assert kind != "thread_opened", line
        self._same_command(matter, line)
        if matter.ended:
            assert kind in AFTER_THE_END or (self.repairs and kind in REPAIRS), f"{kind} after {matter.phase}"
        matter.version = line["seq"]
        getattr(self, f"_{kind}", self._nothing)(matter, line, data)
        matter.lines.append(line)

    def in_force(self, matter: Matter) -> dict[str, Any]:
        above = [self.matters[id].policy for id in matter.ancestors]
        return statement.strictest([self.installation, *above, matter.policy])

    # --- lines that open or add

    def _open(self, line: Line) -> None:
        data, cause = line["data"], line["data"]["cause"]
        matter = Matter(
            id=line["thread_id"], org_id=data["org_id"], title=cause["title"], run_id=cause.get("run_id"),
            policy=data["policy"], parent=data.get("parent"), ancestors=tuple(data.get("ancestors") or ()),
            rule=data.get("rule") or "all_of", opened_at=line["at"], entered_at=line["at"],
        )  # fmt: skip
        matter.evidence = [item["id"] for item in cause.get("evidence") or ()]
        self.matters[matter.id] = matter
        self._same_command(matter, line)
        matter.lines.append(line)
        for proposal in data.get("proposals") or ():
            matter.proposals[proposal["stage"]] = proposal
            matter.made.append((1, proposal))
        if matter.parent is not None:
            above = self.matters[matter.parent]
            assert not above.ended, f"{matter.id} opened under {above.phase}"
            assert matter.ancestors == (above.id, *above.ancestors), (matter.ancestors, above.ancestors)
            assert len(matter.ancestors) <= 3
            self._not_looser(matter)

    def _not_looser(self, matter: Matter, before: Mapping[str, Any] | None = None) -> None:
        """No axis is looser than that of an ancestor, but where it was looser before, and is not loosened more."""
        own, above = matter.policy, [self.matters[id].policy for id in matter.ancestors]
        below = statement.strictest([own, *above])
        kept = statement.strictest([own, before]) if before is not None else below
        for axis, value in statement.strictest([own]).items():
            assert value in (below[axis], kept[axis]), f"{axis} is looser than an ancestor's: {value}"

    def _same_command(self, matter: Matter, line: Line) -> None:
        assert line["command_id"], line
        if line["command_id"] != matter.command:
            assert line["command_id"] not in matter.commands, f"{line['command_id']} was applied twice"
            matter.commands.add(line["command_id"])
            matter.command, matter.lines = line["command_id"], []
        else:
            assert all(done["kind"] != "phase_changed" for done in matter.lines), "phase_changed is the last line"

    def _nothing(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        """A line that only people read."""

    def _evidence_added(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        matter.evidence += [item["id"] for item in data["items"]]

    def _policy_changed(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        before, matter.policy = matter.policy, data["policy"]
        if line["actor"]["kind"] != "operator":
            assert statement.strictest([before, matter.policy]) == statement.strictest([matter.policy]), "loosened"
        self._not_looser(matter, before)

    def _deferred(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        assert matter.phase in statement.CARDS
        matter.deferred_until = data["until"]

    def _fact(self, matter: Matter, line: Line, text: str | None) -> None:
        assert line["actor"]["kind"] in ("person", "operator")
        matter.fact_seq = line["seq"]
        if text:
            matter.facts.append(text)

    def _propose(self, matter: Matter, line: Line, proposal: Mapping[str, Any]) -> None:
        matter.proposals[proposal["stage"]] = proposal
        matter.made.append((line["seq"], proposal))

    def _corrected(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        self._fact(matter, line, data.get("text"))
        self._propose(matter, line, data["proposal"])

    def _provided(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        self._fact(matter, line, data.get("text"))
        if matter.phase == "awaiting_redirect":
            self._drop(matter, data["stage"])

    def _picked(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        assert data["proposal"]["body"]["action"] in self.known
        self._propose(matter, line, data["proposal"])

    def _redirected(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        self._fact(matter, line, data.get("feedback"))
        matter.redirects += 1
        self._drop(matter, data["redirect_to"])

    def _drop(self, matter: Matter, stage: str) -> None:
        for later in STAGES[STAGES.index(stage) :]:
            matter.proposals.pop(later, None)
        matter.approved = None

    # --- inference

    def _inference_started(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        (calls, tokens, usd), limit = matter.spent, self.in_force(matter)
        matter.admitted = calls < limit["calls"] and tokens < limit["tokens"] and usd < limit["usd"]

    def _book(self, matter: Matter, call: Mapping[str, Any] | None) -> None:
        if call is not None and call["id"] not in matter.calls:
            assert matter.admitted, f"a call of {matter.id} over its budget: {matter.spent}"
            matter.calls[call["id"]] = (call.get("calls", 1), call["tokens"], call["usd"])

    def _inferred(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        self._book(matter, data.get("call"))
        proposal = data["proposal"]
        if data.get("stored"):
            assert data.get("call") is None, "a stored proposal costs nothing"
            same = (proposal["stage"], proposal["body"])
            made = [seq for seq, one in matter.made if (one["stage"], one["body"]) == same]
            assert made, f"a stored proposal out of nowhere: {proposal}"
            assert made[-1] >= matter.fact_seq, "a proposal older than the last fact was used"
        self._propose(matter, line, proposal)

    _intent_inferred = _context_inferred = _action_inferred = _inferred

    def _inference_failed(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        self._book(matter, data.get("call"))

    _inference_rejected = _inference_failed

    def _late_report(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        if call := data.get("call"):
            matter.calls.setdefault(call["id"], (call.get("calls", 1), call["tokens"], call["usd"]))

    # --- execution

    def _action_approved(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        proposal = matter.proposals["action"]
        assert data["auto"] == (line["actor"]["kind"] == "system")
        assert data["proposal"] == proposal["id"], "approved is the newest proposal"
        assert data["action"] == proposal["body"]["action"]
        bound = {**proposal["body"].get("parameters", {}), **data["parameters"]}
        assert bound == data["parameters"], "the parameters are those of the proposal, and bound ones"
        matter.approved = data
        matter.approvals.append(data["hash"])

    def _execution_started(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        assert matter.phase == "executing"
        assert matter.approved is not None
        for name in ("action", "parameters", "hash"):
            assert data[name] == matter.approved[name], f"{name}: executed is not what was approved"
        assert data["execution"] not in matter.executions, "an execution starts once in its log"
        matter.executions[data["execution"]] = data

    def _execution_finished(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        assert matter.phase == "executing"

    def _children_opened(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        assert data["children"]
        assert len(data["children"]) <= 50
        matter.children |= {child["id"]: None for child in data["children"]}
        matter.rule = data.get("rule") or matter.rule

    def _child_ended(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        assert matter.children[data["child"]] is None, "a child ends once"
        assert self.matters[data["child"]].phase == data["phase"]
        assert data["phase"] in TERMINAL
        matter.children[data["child"]] = data["phase"]

    # --- moves

    def _phase_changed(self, matter: Matter, line: Line, data: Mapping[str, Any]) -> None:
        before, trigger, after = data["from"], data["trigger"], data["to"]
        assert before == matter.phase, f"{matter.id} was {matter.phase}, its log says {before}"
        assert after in CELLS.get((before, trigger), ()), f"{before} {trigger} {after} is no cell"
        human = line["actor"]["kind"] in ("person", "operator")
        assert human == (trigger in HUMAN), f"{trigger} by {line['actor']}"
        if trigger == "timeout":
            self._due(matter, line["at"])
        allowed = self._targets(matter, trigger)
        assert after in allowed, f"{before} {trigger}: {after}, not {allowed}"
        assert data["stage"] == self._stage(matter, trigger, after, data["stage"]), (before, trigger, after, data)
        matter.phase, matter.stage = after, data["stage"]
        matter.entered, matter.entered_at, matter.deferred_until = line["seq"], line["at"], 0.0
        matter.path.append((trigger, after))
        if matter.card is not None:
            matter.cards.append(matter.card)

    def _due(self, matter: Matter, at: float) -> None:
        assert at >= matter.deferred_until, "a timeout before the card came back"
        if matter.phase == "executing":
            started = [run["deadline_at"] for run in matter.executions.values()]
            assert at >= (started[-1] if matter.executions and started[-1] > matter.entered_at else matter.entered_at)
        else:
            assert at - matter.entered_at >= EARLIEST[matter.phase], f"a timeout of {matter.phase} too early"

    def _targets(self, matter: Matter, trigger: str) -> set[str]:
        """Return the phases that the guards allow."""
        cell = (matter.phase, trigger)
        if cell == ("awaiting_inference", "inference_started"):
            return {f"inferring_{matter.stage}"}
        if matter.phase == "awaiting_inference" and trigger in ("inference_rejected", "timeout"):
            return {f"awaiting_{matter.stage}_clarification"}
        if trigger == "inference_done":
            return {self._advance(matter)}
        if cell == ("awaiting_action_clarification", "provided"):
            return {"awaiting_confirmation" if matter.sibling("picked") else "awaiting_inference"}
        if cell == ("executing", "execution_done"):
            return {self._review(matter)}
        if cell == ("monitoring", "execution_done"):
            return {self._children(matter)}
        return set(CELLS[cell])

    def _advance(self, matter: Matter) -> str:
        stage, proposal = matter.stage, matter.proposals[matter.stage]
        judged = matter.sibling("gate_judged")
        if proposal["body"].get("question"):
            assert stage == "action"
            return "awaiting_action_clarification"
        passed = statement.passes(stage, proposal, self.in_force(matter), self.known)
        assert judged is not None, "every pass is judged in the log"
        assert judged["stage"] == stage
        assert judged["passed"] == passed, f"judged {judged}, the statement says {passed}: {proposal}"
        if passed:
            return "executing" if stage == "action" else "awaiting_inference"
        return "awaiting_confirmation" if stage == "action" else f"awaiting_{stage}_confirmation"

    def _review(self, matter: Matter) -> str:
        finished = matter.sibling("execution_finished")
        assert finished is not None
        assert matter.approved is not None
        report = finished["report"]
        if report["disposition"] == "handed_off":
            return "handed_off"
        if report["disposition"] == "decomposed":
            return "monitoring"
        action = self.known[matter.approved["action"]]
        return "awaiting_review" if statement.needs_review(report, action, self.in_force(matter)) else "done"

    def _children(self, matter: Matter) -> str:
        ends = list(matter.children.values())
        assert ends, "a parent without children"
        assert None not in ends, "the parent ended before its children"
        return "dismissed" if matter.rule == "alternatives" and {*ends} == {"dismissed"} else "done"

    def _stage(self, matter: Matter, trigger: str, after: str, given: str) -> str:
        """Return the stage after a move; `given` is what the line has."""
        present = matter.stage
        if trigger == "redirected" or (trigger == "provided" and matter.phase == "awaiting_redirect"):
            asked = matter.sibling("redirected") or {}
            assert STAGES.index(given) <= STAGES.index(present), f"redirected forward: {present} to {given}"
            return str(asked.get("redirect_to", given))
        passed = trigger == "inference_done" and after == "awaiting_inference"
        edited = trigger == "edited" and matter.phase != "awaiting_confirmation"
        if trigger == "confirmed" or edited or passed:
            return statement.next_stage(present)
        return "intent" if trigger == "begin_inference" else present
