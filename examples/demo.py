"""The demo: `./dev demo` runs a scripted agent on a broken repository, plain and steered.

`./dev demo FILE...` replays your own runs. The exit code is 0 if the steered run has fixed the tests, otherwise 1.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress


def main(arguments: Sequence[str]) -> int:
    if arguments:
        from reasonblocks_workbench.cli import main as reasonblocks_command

        return reasonblocks_command(["replay", *arguments])
    from side_by_side import compare, introduce
    from two_runs import both_runs

    introduce()
    plain, steered = both_runs()
    with suppress(BrokenPipeError):  # the reader closed the pipe, as `head` does
        compare(plain, steered)
    return 0 if steered.fixed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
