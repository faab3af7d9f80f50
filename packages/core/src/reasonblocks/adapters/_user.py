"""Reads what a user said during a run, the `Step.user_text` of every adapter and reader."""

from __future__ import annotations

from collections.abc import Iterable

from ..messages import get, langchain, openai
from ..messages.content import text_of
from ..render import FRAME

USERS = frozenset({"user", *langchain.HUMANS})
MODELS = frozenset({"assistant", "model", *langchain.ANSWERS})
"""Values of `role`, or of LangChain's `type`, of a message of the user, and of the model."""


def new_user_text(newest_first: Iterable[object]) -> str:
    """Return the text of the user's messages since the newest answer, for the step that the next answer begins.

    The messages are those before the step's call, the newest first: LangChain's, items of the Responses API, or
    mappings with a role. Without an answer or a tool's result they begin the run: then they are its task, and the text
    is "".
    """
    found: list[str] = []
    has_begun = False
    for message in newest_first:
        role = get(message, "role") or get(message, "type")
        if role in MODELS or openai.is_call(message) or openai.kind(message) == "reasoning":
            has_begun = True
            break
        if role in langchain.RESULTS or openai.is_output(message):
            has_begun = True  # where a server keeps the conversation, a request has the results without their answer
        elif role in USERS and not langchain.is_made(message):
            found.append(text_of(get(message, "content")))
    return user_text(reversed(found)) if has_begun else ""


def user_text(texts: Iterable[str]) -> str:
    """Join the user's new messages, without guidance of ours that a request had at their ends."""
    own = (text.partition(f"{FRAME}\n")[0].strip() for text in texts)
    return "\n\n".join(filter(None, own))
