"""The entry point: words to an invocation, exit codes back to the shell. Holds no decision of any verb."""

import atexit
import gc
import os
import sys
import threading
from typing import NoReturn

from coordinate_agents.cli import output
from coordinate_agents.cli.invocation import parse
from coordinate_agents.graph.errors import EXIT_INTERRUPTED


def main() -> NoReturn:
    gc.disable()  # until everything is loaded (`execute`): nothing of that is ever garbage
    output.prepare_streams()
    argv = sys.argv[1:]
    try:
        invocation = parse(argv)
        if invocation is None:
            from coordinate_agents.cli.commands import run_words

            _leave(run_words(argv))
        from coordinate_agents.cli.execute import execute

        code = execute(invocation, argv)
        if invocation.verb.access == "read":
            _leave_at_once(code)
        _leave(code)
    except KeyboardInterrupt:  # while modules were loaded: nothing had begun
        sys.exit(EXIT_INTERRUPTED)


def mcp() -> NoReturn:
    """`coordinate-agents-mcp`: the verb `mcp` as a program of its own, for clients that take no words with it."""
    sys.argv.insert(1, "mcp")
    main()


def _leave_at_once(code: int) -> NoReturn:
    """A read verb lives for some hundredths of a second: to take its interpreter down would be a good part of it."""
    output.flush()
    os._exit(code)


def _leave(code: int) -> NoReturn:
    """End at once where nothing runs any more: everything that was opened is closed and written by then."""
    if threading.active_count() > 1:
        sys.exit(code)
    atexit._run_exitfuncs()
    output.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
