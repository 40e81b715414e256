"""Who a process is on Windows: its number and the moment of its start, under this machine and this boot.

A number alone is given away again as soon as the last handle is closed. Seen on no Windows yet.
"""

import sys

from coordinate_agents.sessions.windows.kernel import Kernel

_MACHINE_KEY = r"SOFTWARE\Microsoft\Cryptography"


def start_time(kernel: Kernel, pid: int) -> int | None:
    """When the process was created, in units of 100 ns since 1601; None when there is none."""
    process = kernel.open(pid)
    if process is None:
        return None
    try:
        # An open handle keeps an ended process: it is still there to be asked, and counts as gone.
        return None if kernel.wait(process, 0) else kernel.start_time(process)
    except OSError:
        return None
    finally:
        kernel.close(process)


def is_same(kernel: Kernel, pid: int, started: int) -> bool:
    """Whether the process with this number and start still runs."""
    return start_time(kernel, pid) == started


def machine_id() -> str:
    """The id that Windows gave this installation; empty where it cannot be read."""
    if sys.platform != "win32":
        return ""
    import winreg

    rights = winreg.KEY_READ | winreg.KEY_WOW64_64KEY
    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _MACHINE_KEY, 0, rights) as key:
            return str(winreg.QueryValueEx(key, "MachineGuid")[0])
    except OSError:
        return ""
