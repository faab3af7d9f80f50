"""Runs ScienceWorld's simulator: one Java process, started once, in which every environment has a world of its own."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import Any

from ._textworld import NotInstalled

MEMORY = "-Xmx4g"
"""The most memory that Java takes. A world needs some 10 MB, so this is enough for 300 at a time."""
SAME_ORDER = ("-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=2")
"""Gives all objects one hash, so that the simulator's sets keep the order in which they were filled. Without it the
same world lists its things in another order each time."""
SIMPLER = "openDoors,openContainers,selfWateringFlowerPots,noElectricalAction"
"""ScienceWorld's simplifications, all but teleporting: finding the way is a part of the task."""


_ONE_AT_A_TIME = Lock()
"""Held by a step from setting its random numbers to its end, as all worlds share their source."""


class NoJava(RuntimeError):
    """Raised where the program `java` is missing."""

    def __init__(self) -> None:
        super().__init__(
            "ScienceWorld needs java on the PATH; on Debian or Ubuntu: apt-get install default-jre-headless"
        )


class World:
    """A task that is being played; `look` describes the present room.

    Each step has random numbers of its own, so that no world disturbs another.
    """

    def __init__(self, task: str, variation: int, *, own_way: bool = False) -> None:
        with _ONE_AT_A_TIME:
            java, self._random = _simulator()
            self._world = java.scienceworld.runtime.pythonapi.PythonInterface()
            self._steps = 0
            self._random.setSeed(0)
            self._world.load(task, variation, SIMPLER, own_way)
            self._world.reset()
        self.look = str(self._world.freeActionLook())

    def type(self, command: str) -> str:
        """Make one step and return its answer."""
        self._steps += 1
        with _ONE_AT_A_TIME:
            self._random.setSeed(self._steps)
            answer = str(self._world.step(command))
        self.look = str(self._world.freeActionLook())
        return answer

    @property
    def task(self) -> str:
        """The description of the task."""
        return str(self._world.freeActionTaskDesc())

    @property
    def score(self) -> int:
        """ScienceWorld's own score: 100 if the task is solved, below 0 if it is lost."""
        return round(100 * float(self._world.getScore()))

    @property
    def completed(self) -> bool:
        """True once the task is solved or lost."""
        return bool(self._world.getCompleted()) or self.score < 0

    @property
    def own_way(self) -> Sequence[str]:
        """ScienceWorld's own solution from the beginning, for a world that was asked to make it."""
        return [*map(str, self._world.getGoldActionSequence())]

    @property
    def commands(self) -> Sequence[str]:
        """All commands that would do something now: some hundreds."""
        return sorted(self._world.getValidActionObjectCombinations())


def variations(task: str) -> int:
    """Return the number of variations of a task."""
    with _ONE_AT_A_TIME:
        java, _ = _simulator()
    return int(java.scienceworld.runtime.pythonapi.PythonInterface().getTaskMaxVariations(task))


@cache
def _simulator() -> tuple[Any, Any]:
    """Start Java, which ends with this process; return its classes and its source of random numbers.

    Raises `NotInstalled` without the package and `NoJava` without Java.
    """
    try:
        from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
        from scienceworld.constants import JAR_PATH
    except ImportError as exc:
        raise NotInstalled("scienceworld") from exc
    if not shutil.which("java"):
        raise NoJava
    folder = tempfile.mkdtemp(prefix="reasonblocks-scienceworld-")  # the simulator writes a table where it runs
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    options = [MEMORY, *SAME_ORDER]
    port, token, process = launch_gateway(
        classpath=JAR_PATH, javaopts=options, cwd=folder, die_on_exit=True, enable_auth=True, return_proc=True
    )
    parameters = GatewayParameters(auto_field=True, port=port, auth_token=token)
    gateway = JavaGateway(gateway_parameters=parameters, java_process=process)
    atexit.register(_stop, gateway, process)
    return gateway.jvm, getattr(getattr(gateway.jvm.scala.util, "Random$"), "MODULE$")


def _stop(gateway: Any, process: Any) -> None:
    gateway.shutdown()
    process.stdin.close()
    process.wait()
