"""Reads the transcripts of Claude Code, which the Claude Agent SDK writes, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reasonblocks.exceptions import RecordError
from reasonblocks.messages import anthropic, first_text
from reasonblocks.messages.claude_code import INTERRUPTED, NOT_ASKED, SYNTHETIC, prompt_text, result_of, task_done
from reasonblocks.messages.content import text_of
from reasonblocks.types import JSON

from ._claude_lines import NOT_PROMPTS, SAID, Line, line_of, newest_branch
from ._conversation import StepList, UserTexts
from ._files import Record
from ._run import Header, RecordedRun, Runs

STARTERS = ("Task", "Agent")
"""The tools that start a subagent."""


class ClaudeCode:
    """Reads the newest branch of a transcript: a prompt begins a run, and the lines of one `message.id` are a step.

    As in a live session, the prompt after an interruption continues the run, and so does the report of a background
    task. A subagent's conversation, in its own file or on lines with `isSidechain`, is a run whose parent is the one
    that started it. A run that ends with an API error has failed; any other outcome is unknown.
    """

    name = "claude-code"
    title = "Claude Code transcripts"

    def sniff(self, value: JSON) -> bool:
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            return False
        return isinstance(value.get("sessionId"), str) or (value["type"] == "summary" and "leafUuid" in value)

    def lacks(self, value: JSON) -> str | None:
        said = isinstance(value, dict) and value.get("type") in SAID and isinstance(value.get("message"), dict)
        return "no 'sessionId'" if said and not self.sniff(value) else None

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        sessions: dict[str, list[Line]] = {}
        for record in records:
            line = line_of(file, record) if isinstance(record, Record) else record
            if isinstance(line, RecordError):
                yield line
            elif line is not None and isinstance(record, Record) and isinstance(record.value, dict):
                sessions.setdefault(first_text(record.value, "sessionId") or "", []).append(line)
        taken: dict[str, int] = {}
        for lines in sessions.values():
            yield from _session(file, lines, taken)


# --- the runs of a session


@dataclass(slots=True)
class _Run:
    """A run, while its lines are read."""

    id: str
    line: int
    task: str
    parent: str | None = None
    interrupted: bool = False
    failure: str | None = None
    said: list[Line | str] = field(default_factory=list)
    """The lines with results, those of prompts that continued the run, and the ids of the answers, in order."""
    answers: dict[str, list[Line]] = field(default_factory=dict)

    def answer(self, line: Line) -> None:
        error = first_text(line.value, "error")
        if error or line.value.get("isApiErrorMessage"):
            self.failure = f"failure: {error or text_of(line.blocks)}"
        elif line.message.get("model") != SYNTHETIC:
            self.failure = None
            if line.answer_id not in self.answers:
                self.said.append(line.answer_id)
            self.answers.setdefault(line.answer_id, []).append(line)

    def recorded(self, file: str) -> RecordedRun:
        steps = StepList(UserTexts(self.task))
        for said in self.said:
            if isinstance(said, Line):
                for block in said.results:
                    steps.add(result_of(block))
                if not said.results:
                    steps.users.add(prompt_text(text_of(said.blocks)))
                continue
            lines = self.answers[said]
            usage = next(
                (usage for line in reversed(lines) if isinstance(usage := line.message.get("usage"), dict)), None
            )
            steps.begin(
                anthropic.answer_of(block for line in lines for block in line.blocks), anthropic.usage_of(usage)
            )
            steps.known(model=first_text(lines[0].message, "model") or "")
        header = Header(
            run_id=self.id, task=self.task, outcome=self.failure, model=steps.model, parent_run_id=self.parent
        )
        return header.recorded(file, self.line, steps.steps, steps.usages)


@dataclass(slots=True)
class _Session:
    """The runs of a session while it is read, by the ids that refer to them."""

    taken: dict[str, int]
    """The number of runs of the file that have each id."""
    runs: list[_Run] = field(default_factory=list)
    by_prompt: dict[str, _Run] = field(default_factory=dict)
    by_task: dict[str, _Run] = field(default_factory=dict)
    """The runs that started a subagent, by its id: that of its background task, too."""
    by_question: dict[str, _Run] = field(default_factory=dict)
    """The same by the subagent's prompt: in older transcripts, subagents have no id."""

    def begin(self, line: Line, named: str, task: str) -> _Run:
        """Begin a run. An id that is taken, as the ids of prompts are in a copied session, gets a number."""
        self.taken[named] = number = self.taken.get(named, 0) + 1
        run = _Run(id=named if number == 1 else f"{named}.{number}", line=line.number, task=task)
        self.runs.append(run)
        return run

    def read(self, lines: Iterable[Line], agent: str = "") -> None:
        """Read the conversation of the main agent, or of the subagent with this id."""
        run: _Run | None = None
        for line in lines:
            if line.by_model or line.results:
                run = run or self.begin(line, agent or _prompt_id(line), "")  # a copy of a session may lack its prompt
                self._continue(run, line)
            elif (prompt := _prompt(line)) is None:
                continue
            elif prompt.startswith(INTERRUPTED):
                if run is not None:
                    run.interrupted = True
            else:
                run = self._run_of(run, line, prompt, agent)

    def _run_of(self, run: _Run | None, line: Line, prompt: str, agent: str) -> _Run:
        """Return the run of a prompt: a new one, unless the prompt continues one. `run` is that of the last prompt."""
        prompt_id, done = _prompt_id(line), task_done(prompt)
        if done is not None:
            continued = self.by_task.get(done, run)
        else:
            continued = run if run is not None and run.interrupted else None
        found = continued or self.begin(line, agent or prompt_id, prompt_text(prompt))
        found.interrupted = False
        if continued is not None and done is None:
            found.said.append(line)
        if not agent:
            self.by_prompt[prompt_id] = found
        elif continued is None:
            found.parent = self._parent(line, agent, prompt)
        return found

    def _parent(self, line: Line, agent: str, prompt: str) -> str | None:
        """Return the run that started a subagent. Its own file names only the prompt: it names the run, too."""
        prompt_id = first_text(line.value, "promptId")
        known = self.by_task.get(agent) or self.by_prompt.get(prompt_id or "") or self.by_question.get(prompt)
        return known.id if known else prompt_id

    def _continue(self, run: _Run, line: Line) -> None:
        if line.by_model:
            run.answer(line)
            for block in line.blocks:
                question = block.get("input") if block.get("name") in STARTERS else None
                if isinstance(question, Mapping) and isinstance(question.get("prompt"), str):
                    self.by_question[question["prompt"]] = run
            return
        run.said.append(line)
        told = line.value.get("toolUseResult")
        if isinstance(told, Mapping) and (started := first_text(told, "agentId")):
            self.by_task.setdefault(started, run)


def _session(file: str, lines: Sequence[Line], taken: dict[str, int]) -> Iterator[RecordedRun | RecordError]:
    session, main, subagents = _Session(taken), list[Line](), dict[str, list[Line]]()
    roots: dict[str, str] = {}
    for line in lines:
        if line.value.get("isSidechain") is True:
            roots[line.uuid] = agent = line.agent or roots.get(line.parent or "", line.uuid)
            subagents.setdefault(agent, []).append(line)
        else:
            main.append(line)
    session.read(newest_branch(main))
    for agent, own in subagents.items():
        session.read(newest_branch(own), agent)
    for run in sorted(session.runs, key=lambda run: run.line):
        if run.answers or run.failure:
            try:
                yield run.recorded(file)
            except RecursionError:
                yield RecordError(file, run.line, "is nested too deeply")


def _prompt_id(line: Line) -> str:
    return first_text(line.value, "promptId") or line.uuid


def _prompt(line: Line) -> str | None:
    """Return the text of a user message, and of the CLI's notice of an interruption or of a finished task.

    Return None for any other message that the CLI wrote.
    """
    if any(line.value.get(mark) is True for mark in NOT_PROMPTS):
        return None
    text = text_of(line.blocks)
    return None if text.startswith(NOT_ASKED) else text
