"""`./dev demo`: a scripted agent on a broken repository, plain and steered. `./dev demo FILE...` replays your own runs.

Exit code 0 when the steered run has fixed the tests, 1 when it has not.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress


def main(arguments: Sequence[str]) -> int:
    if arguments:
        from reasonblocks.cli import main as reasonblocks_command

        return reasonblocks_command(["replay", *arguments])
    from side_by_side import compare, introduce
    from two_runs import both_runs

    introduce()
    plain, steered = both_runs()
    with suppress(BrokenPipeError):  # the reader of our output has seen enough
        compare(plain, steered)
    return 0 if steered.fixed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
