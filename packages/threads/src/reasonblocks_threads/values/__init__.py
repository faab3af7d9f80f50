"""The values of threads: frozen dataclasses whose contents are plain JSON types."""

from __future__ import annotations

from ._action import (
    GRADES as GRADES,
)
from ._action import (
    Amplifier as Amplifier,
)
from ._action import (
    Execution as Execution,
)
from ._action import (
    Grade as Grade,
)
from ._action import (
    Report as Report,
)
from ._action import (
    Risk as Risk,
)
from ._card import Answer as Answer
from ._card import Card as Card
from ._card import Failed as Failed
from ._command import FORM as FORM
from ._command import KINDS as KINDS
from ._command import (
    Command as Command,
)
from ._command import EventKind as EventKind
from ._command import (
    Expect as Expect,
)
from ._command import (
    ExpectCard as ExpectCard,
)
from ._command import (
    ExpectPhase as ExpectPhase,
)
from ._command import (
    ExpectVersion as ExpectVersion,
)
from ._command import (
    ExpectWork as ExpectWork,
)
from ._command import (
    Letter as Letter,
)
from ._command import (
    NewWork as NewWork,
)
from ._command import (
    Rows as Rows,
)
from ._command import ThreadEvent as ThreadEvent
from ._command import (
    Work as Work,
)
from ._thread import (
    SYSTEM as SYSTEM,
)
from ._thread import (
    Actor as Actor,
)
from ._thread import (
    Approval as Approval,
)
from ._thread import (
    Budget as Budget,
)
from ._thread import (
    Cause as Cause,
)
from ._thread import (
    Child as Child,
)
from ._thread import (
    Evidence as Evidence,
)
from ._thread import (
    Fact as Fact,
)
from ._thread import (
    Gate as Gate,
)
from ._thread import (
    Policy as Policy,
)
from ._thread import (
    Problem as Problem,
)
from ._thread import (
    Proposal as Proposal,
)
from ._thread import (
    Spent as Spent,
)
from ._thread import (
    Thread as Thread,
)
from ._thread import (
    digest as digest,
)
