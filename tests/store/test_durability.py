"""What an outside act depends on is on disk when `append` returns; progress costs no fsync."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import stores

_APPEND = """
store = Store.open(state)
# The first append makes the log, which costs two more.
store.append("checkout", 1, [NewEvent("Noted", {})], now=2.0)
os.write(2, b"MARK begin\\n")
for number in range(20):
    store.append("checkout", 1, [NewEvent("Noted", {"n": number}, durable=KIND)], now=2.0)
os.write(2, b"MARK end\\n")
os._exit(0)
"""


@pytest.mark.parametrize(("durable", "expected"), [("True", 20), ("False", 0)])
def test_fsyncs_of_twenty_appends(tmp_path: Path, durable: str, expected: int) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace counts the fsyncs")
    state = stores.seeded(tmp_path)
    trace = tmp_path / "trace"
    code = stores.PRELUDE + _APPEND.replace("KIND", durable)
    command = [
        "strace",
        "-f",
        "-e",
        "trace=fsync,fdatasync,write",
        "-o",
        str(trace),
        sys.executable,
        "-c",
        code,
        str(state),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0 and "MARK" not in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr[:200]}")
    lines = trace.read_text().splitlines()
    begin, end = (next(n for n, line in enumerate(lines) if f"MARK {word}" in line) for word in ("begin", "end"))
    assert sum("sync(" in line for line in lines[begin:end]) == expected
