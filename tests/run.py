"""Set the project up and run every check: lint, format, types, import contracts, tests.

    python3 tests/run.py [PYTEST ARGUMENTS]

Without arguments the tests run on all cores. Starts under any Python 3.6 (see fixtures/bootstrap.py). Exits 0 only when
every part passed; all parts run, pytest last, so that one run tells everything.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "fixtures"))

import bootstrap  # noqa: E402


def main():
    python = bootstrap.prepare(["dev"])
    tools = Path(python).parent
    arguments = sys.argv[1:]
    parts = [
        ("ruff check", [str(tools / "ruff"), "check", "."]),
        ("ruff format", [str(tools / "ruff"), "format", "--check", "."]),
        ("mypy", [str(tools / "mypy")]),
        ("lint-imports", [str(tools / "lint-imports")]),
        ("pytest", [python, "-m", "pytest"] + (arguments or ["-q", "-n", "auto"])),
    ]
    failed = [(name, code) for name, code in [(name, _run(name, argv)) for name, argv in parts] if code != 0]
    if not failed:
        return 0
    sys.stderr.write("Failed: {}\n".format(", ".join("{} (exit code {})".format(*each) for each in failed)))
    return 1


def _run(name, argv):
    bootstrap.say(f"== {name}")
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    return subprocess.call(argv, cwd=str(ROOT), stdin=subprocess.DEVNULL, env=environment)


if __name__ == "__main__":
    sys.exit(main())
