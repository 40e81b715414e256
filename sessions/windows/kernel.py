"""The few calls of kernel32 that custody on Windows rests on, with their structures; nothing is decided here.

Structures use types of a fixed size, so that their layout can be checked on every system; the calls exist on Windows
only. Source: Microsoft's documentation of jobapi2.h, winnt.h and processthreadsapi.h.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Any, Final, Protocol

ERROR_MORE_DATA: Final = 234
KILL_ON_JOB_CLOSE: Final = 0x2000
EXTENDED_LIMITS: Final = 9  # JobObjectExtendedLimitInformation
PROCESS_IDS: Final = 3  # JobObjectBasicProcessIdList
_TERMINATE: Final = 0x0001
_QUERY: Final = 0x1000  # PROCESS_QUERY_LIMITED_INFORMATION
_SYNCHRONIZE: Final = 0x100000
_INFINITE: Final = 0xFFFFFFFF
_MAX_PIDS: Final = 1 << 16


class _Limits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION."""

    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("minimum_set", ctypes.c_size_t),
        ("maximum_set", ctypes.c_size_t),
        ("active_processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
    )


class ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("basic", _Limits),
        ("io", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    )


def pid_list(size: int) -> type[ctypes.Structure]:
    """JOBOBJECT_BASIC_PROCESS_ID_LIST with room for so many."""

    class ProcessIds(ctypes.Structure):
        _fields_ = (
            ("assigned", ctypes.c_uint32),
            ("listed", ctypes.c_uint32),
            ("pids", ctypes.c_size_t * size),
        )

    return ProcessIds


class Kernel(Protocol):
    """What `jobs` and `processes` ask. A handle is a number; every call raises OSError when the system refuses."""

    def own_pid(self) -> int: ...
    def new_job(self) -> int:
        """A job whose processes end with its last handle."""

    def assign(self, job: int, pid: int) -> None: ...
    def pids_of(self, job: int) -> list[int]: ...
    def open(self, pid: int) -> int | None:
        """A handle that may wait for, ask and end the process; None when there is none."""

    def is_in(self, process: int, job: int) -> bool: ...
    def start_time(self, process: int) -> int:
        """In units of 100 ns since 1601."""

    def terminate(self, process: int, code: int) -> None: ...
    def wait(self, process: int, timeout_ms: int) -> bool:
        """Whether it ended within the time."""

    def close(self, handle: int) -> None: ...


class Kernel32:
    """The real one."""

    def __init__(self) -> None:
        self._library: Any
        self._last_error: Callable[[], int]
        if sys.platform != "win32":
            raise OSError("there is no kernel32 on this system")
        self._library = ctypes.WinDLL("kernel32", use_last_error=True)
        self._last_error = ctypes.get_last_error
        for name in ("CreateJobObjectW", "OpenProcess", "GetCurrentProcess"):
            getattr(self._library, name).restype = ctypes.c_void_p

    def own_pid(self) -> int:
        return int(self._library.GetCurrentProcessId())

    def new_job(self) -> int:
        job = self._checked(self._library.CreateJobObjectW(None, None))
        limits = ExtendedLimits()
        limits.basic.flags = KILL_ON_JOB_CLOSE
        size = ctypes.sizeof(limits)
        self._checked(self._library.SetInformationJobObject(_handle(job), EXTENDED_LIMITS, ctypes.byref(limits), size))
        return job

    def assign(self, job: int, pid: int) -> None:
        is_own = pid == self.own_pid()
        process = self._library.GetCurrentProcess() if is_own else self._open(pid, 0x0100 | _TERMINATE)
        try:
            self._checked(self._library.AssignProcessToJobObject(_handle(job), _handle(process)))
        finally:
            if not is_own:
                self.close(process)

    def pids_of(self, job: int) -> list[int]:
        room = 64
        while True:
            found: Any = pid_list(room)()
            query = self._library.QueryInformationJobObject
            if query(_handle(job), PROCESS_IDS, ctypes.byref(found), ctypes.sizeof(found), None):
                return [int(pid) for pid in found.pids[: found.listed]]
            if self._last_error() != ERROR_MORE_DATA or room >= _MAX_PIDS:
                raise self._error()
            room = max(room * 2, int(found.assigned))

    def open(self, pid: int) -> int | None:
        found = self._library.OpenProcess(_TERMINATE | _QUERY | _SYNCHRONIZE, False, pid)
        return int(found) if found else None

    def is_in(self, process: int, job: int) -> bool:
        answer = ctypes.c_int32()
        self._checked(self._library.IsProcessInJob(_handle(process), _handle(job), ctypes.byref(answer)))
        return bool(answer.value)

    def start_time(self, process: int) -> int:
        times = [ctypes.c_uint64() for _ in range(4)]  # FILETIME; created, ended, kernel, user
        self._checked(self._library.GetProcessTimes(_handle(process), *map(ctypes.byref, times)))
        return times[0].value

    def terminate(self, process: int, code: int) -> None:
        self._checked(self._library.TerminateProcess(_handle(process), code))

    def wait(self, process: int, timeout_ms: int) -> bool:
        timeout = _INFINITE if timeout_ms < 0 else timeout_ms
        return int(self._library.WaitForSingleObject(_handle(process), ctypes.c_uint32(timeout))) == 0

    def close(self, handle: int) -> None:
        self._library.CloseHandle(_handle(handle))

    def _open(self, pid: int, rights: int) -> int:
        return self._checked(self._library.OpenProcess(rights, False, pid))

    def _checked(self, answer: int | None) -> int:
        if not answer:
            raise self._error()
        return int(answer)

    def _error(self) -> OSError:
        number = self._last_error()
        return OSError(f"kernel32 refused: error {number}")


def _handle(value: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(value)
