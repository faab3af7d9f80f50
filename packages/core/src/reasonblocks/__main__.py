"""`python -m reasonblocks` is the command `reasonblocks`."""

from __future__ import annotations

from .cli import main

raise SystemExit(main())
