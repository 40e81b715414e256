"""A real tmux as the reference for what a terminal shows: the same bytes in, the text of its screen out.

A server of its own, with its own socket, no configuration and a folder that is removed.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PROGRAM: Final = shutil.which("tmux")
_LIMIT_S: Final = 30
_COLOURS: Final = re.compile(r"\x1b\[[0-9;:]*m")
_GRAPHICS: Final = re.compile("\x0e([^\x0f]*)\x0f?")
_LINES: Final = dict(zip(range(0x60, 0x7F), "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·", strict=True))


class Tmux:
    """One pane of a fixed size. `shows` starts afresh every time."""

    def __init__(self, folder: Path, columns: int, rows: int) -> None:
        self._folder = folder
        self.columns, self.rows = columns, rows
        self._shown = 0
        size = ["-x", str(columns), "-y", str(rows)]
        self._call("-f", "/dev/null", "new-session", "-d", "-s", "s", *size, "cat", ";", "set", "-g", "status", "off")
        self._call("set", "-g", "remain-on-exit", "on")
        self._call("resize-window", "-t", "s", *size)

    def shows(self, data: bytes) -> tuple[tuple[str, ...], int, int, bool]:
        """Lines without spaces at their end, cursor row and column, whether the alternate screen is shown."""
        self._shown += 1
        file, channel = self._folder / "data", f"shown-{self._shown}"
        file.write_bytes(data)
        # The terminal answers the question after it has drawn everything before it.
        script = (
            f"stty raw -echo; cat '{file}'; printf '\\033[5n'; head -c 4 >/dev/null; "
            f"'{PROGRAM}' wait-for -S {channel}; exec cat >/dev/null"
        )
        self._call("respawn-pane", "-k", "-t", "s", "sh", "-c", script)
        self._call("wait-for", channel)
        text = self._call("capture-pane", "-p", "-e", "-t", "s")
        facts = self._call("display", "-p", "-t", "s", "#{cursor_y} #{cursor_x} #{alternate_on}").split()
        lines = [line.rstrip(" ") for line in _plain(text).split("\n")][: self.rows]
        lines += [""] * (self.rows - len(lines))
        return tuple(lines), int(facts[0]), min(int(facts[1]), self.columns - 1), facts[2] == "1"

    def end(self) -> None:
        pid = self._call("display", "-p", "#{pid}").strip()
        self._call("kill-server")
        subprocess.run(["tail", "-s", "0.02", f"--pid={pid}", "-f", "/dev/null"], timeout=_LIMIT_S, check=True)

    def _call(self, *words: str) -> str:
        assert PROGRAM is not None
        done = subprocess.run(
            [PROGRAM, "-S", str(self._folder / "socket"), "-u", *words],
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=_LIMIT_S,
        )
        assert done.returncode == 0, f"tmux {words}: {done.stderr}"
        return done.stdout


@contextmanager
def tmux(columns: int, rows: int) -> Iterator[Tmux]:
    folder = Path(tempfile.mkdtemp(prefix="tmux-"))
    try:
        one = Tmux(folder, columns, rows)
        try:
            yield one
        finally:
            one.end()
    finally:
        shutil.rmtree(folder)


def _plain(text: str) -> str:
    """Without colours; line drawing, which may go on over lines, as the characters that are seen."""
    text = _COLOURS.sub("", text)
    return _GRAPHICS.sub(lambda found: found[1].translate(_LINES), text).replace("\x0f", "")
