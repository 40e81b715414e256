"""The entry point: words to an invocation, exit codes back to the shell. Holds no decision of any verb."""

import gc
import sys
from collections.abc import Sequence
from typing import NoReturn

from coordinate_agents.cli import output
from coordinate_agents.cli.invocation import parse


def main() -> NoReturn:
    output.prepare_streams()
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Carry the command line out; returns the exit code. Read verbs with `--json` take the way without click."""
    invocation = parse(argv)
    if invocation is None:
        from coordinate_agents.cli.commands import run_words

        return run_words(argv)
    # Such a call lives for some hundredths of a second: collecting while modules are loaded costs a tenth of it.
    gc.disable()
    from coordinate_agents.cli.execute import execute

    return execute(invocation, argv)


if __name__ == "__main__":
    main()
