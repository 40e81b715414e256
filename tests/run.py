"""Set the project up and run every check: lint, format, types, import contracts, tests.

    python3 tests/run.py [PYTEST ARGUMENTS]

Without arguments the tests run on all cores. Starts under any Python 3.6 (see fixtures/bootstrap.py). Exits 0 only when
every part passed; all parts run, pytest last, so that one run tells everything.

All of them begin at once and are told one after the other: what pytest says waits until the others have ended.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("graph", "worktrees", "sessions", "cli", "fixtures", "tests")
# Hundreds of programs are started from this checkout: without bytecode each of them would compile all it imports.
_LEFT_OUT = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
sys.path.insert(0, str(ROOT / "fixtures"))

import bootstrap  # noqa: E402


def main():
    python = bootstrap.prepare(["dev"])
    tools = Path(python).parent
    _compile(python)
    arguments = sys.argv[1:] or ["-q", "-n", "auto", "--dist", "worksteal"]
    parts = [
        ("ruff check", [str(tools / "ruff"), "check", "."]),
        ("ruff format", [str(tools / "ruff"), "format", "--check", "."]),
        ("mypy", [str(tools / "mypy")]),
        ("lint-imports", [str(tools / "lint-imports")]),
        ("pytest", [python, "-m", "pytest"] + (["--color=yes"] if sys.stdout.isatty() else []) + arguments),
    ]
    begun = [(name, _begin(argv)) for name, argv in parts]
    failed = [(name, code) for name, code in [(name, _tell(name, process)) for name, process in begun] if code != 0]
    if not failed:
        return 0
    sys.stderr.write("Failed: {}\n".format(", ".join("{} (exit code {})".format(*each) for each in failed)))
    return 1


def _compile(python):
    """A file that cannot be compiled is a finding of the checks."""
    subprocess.call([python, "-m", "compileall", "-q", *SOURCES], cwd=str(ROOT), stdout=subprocess.DEVNULL)


def _begin(argv):
    environment = {key: value for key, value in os.environ.items() if key not in _LEFT_OUT}
    return subprocess.Popen(
        argv,
        cwd=str(ROOT),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        bufsize=0,
    )


def _tell(name, process):
    """Everything that it says, as it comes, until its end; its exit code."""
    bootstrap.say(f"== {name}")
    for piece in iter(lambda: process.stdout.read(4096), b""):
        sys.stdout.buffer.write(piece)
        sys.stdout.flush()
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
