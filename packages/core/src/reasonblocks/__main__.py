"""`python -m reasonblocks` is the command `reasonblocks`, which is part of the workbench."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from .util.extras import folder_of, pip_install

CORE, WORKBENCH = "reasonblocks-core", "reasonblocks-workbench"
USAGE = 2

if find_spec("reasonblocks_workbench") is None:
    sys.stderr.write(
        "reasonblocks: the command is part of reasonblocks-workbench, which is not installed; "
        f"in a clone of ReasonBlocks: {pip_install(map(folder_of, (CORE, WORKBENCH)))}\n"
    )
    sys.exit(USAGE)

from reasonblocks_workbench.cli import main  # noqa: E402

sys.exit(main())
