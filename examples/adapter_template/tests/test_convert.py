"""The user's messages during a run belong to the step whose answer follows."""

from __future__ import annotations

from reasonblocks_yourframework._convert import completed_step

# YOURS: the messages of your framework.
from tinyagents import Message

ANSWER, RESULT = Message("assistant", "I look."), Message("tool", "empty")


def test_what_the_user_says_between_two_answers_belongs_to_the_second() -> None:
    begun = [Message("user", "Fix it."), ANSWER, RESULT]
    said = [*begun, Message("user", "Go on."), ANSWER]
    assert [completed_step(messages).user_text for messages in (begun, said, [*said, ANSWER])] == ["", "Go on.", ""]
