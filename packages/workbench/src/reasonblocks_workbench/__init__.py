"""The workbench for recorded runs: readers, replay, reports, calibration, learning, and the command `reasonblocks`.

No name is imported here: import from the modules, such as `reasonblocks_workbench.traces`.
"""

from __future__ import annotations

__all__: list[str] = []
