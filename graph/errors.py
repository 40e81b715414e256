"""Every refusal and failure of a graph verb: a stable code, an exit code, and three sentences.

A `GraphError` is raised by operations and by the core; edges turn it into text or JSON. Expected outcomes (a check
that failed, a conflict) are values, not exceptions. Nothing here formats for a terminal.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

MAX_MESSAGE_BYTES: Final = 2048
MAX_DETAIL_BYTES: Final = 8192

# Exit codes of the command line (contract section 7).
EXIT_DONE: Final = 0
EXIT_REFUSED: Final = 1
EXIT_USAGE: Final = 2
EXIT_BUG: Final = 3
EXIT_NOT_SUCCEEDED: Final = 4
EXIT_NEEDS_PERSON: Final = 5
EXIT_TIMED_OUT: Final = 6
EXIT_INTERRUPTED: Final = 130

# Codes whose exit code is not EXIT_REFUSED.
_EXIT_CODES: Final[Mapping[str, int]] = {
    "TASK_GRAPH_INVALID": EXIT_USAGE,
    "INVALID_AGENT_CONFIG": EXIT_USAGE,
    "INVALID_ADAPTER_CONFIG": EXIT_USAGE,
    "AWAITING_INPUT": EXIT_NEEDS_PERSON,
    "AUTH_REQUIRED": EXIT_NEEDS_PERSON,
    "QUOTA_EXHAUSTED": EXIT_NEEDS_PERSON,
    "INTEGRATION_CONFLICT": EXIT_NEEDS_PERSON,
    "WAIT_TIMED_OUT": EXIT_TIMED_OUT,
    "INTERNAL_ERROR": EXIT_BUG,
    "INVALID_USAGE": EXIT_USAGE,
    "INTERRUPTED": EXIT_INTERRUPTED,
}

_CODE_LINES: Final = """
TASK_GRAPH_INVALID TASK_NOT_FOUND TASK_ALREADY_RUNNING TASK_STATE_CONFLICT LEASE_HELD STALE_CLAIM
EXECUTABLE_NOT_FOUND EXECUTABLE_NOT_RUNNABLE SPAWN_FAILED AGENT_EXIT_NONZERO AGENT_TIMEOUT AUTH_REQUIRED
AWAITING_INPUT RATE_LIMITED QUOTA_EXHAUSTED INVALID_AGENT_CONFIG INVALID_ADAPTER_CONFIG CONFIG_UNTRUSTED
NOT_A_REPOSITORY REPOSITORY_UNSUPPORTED WORKTREE_CONFLICT DIRTY_WORKTREE SETUP_FAILED BASE_CONFLICT
EVIDENCE_REJECTED CHECK_FAILED INTENT_SCOPE_DRIFT SHARED_STATE_CHANGED INTEGRATION_CONFLICT SESSION_NOT_FOUND
SESSION_NOT_HEALTHY SESSION_START_FAILED SESSION_WRITE_FAILED SESSION_CLOSE_FAILED SESSION_STATE_CONFLICT
UNSUPPORTED_CAPABILITY CLEANUP_REFUSED AGENT_MAY_NOT DISK_LOW DISK_FULL STATE_TAMPERED WAIT_TIMED_OUT
OUTPUT_FAILED INTERNAL_ERROR INVALID_USAGE INTERRUPTED"""
CODES: Final = frozenset(_CODE_LINES.split())


class Problem(NamedTuple):
    """One thing wrong with a document. `line` and `column` count from 1; `path` is like ``subtasks[2].dependsOn``."""

    line: int
    column: int
    path: str
    message: str


class GraphError(Exception):
    """What happened (`message`), what was kept (`kept`), what to do next (`next`: a command to paste).

    `code` is one of CODES. `recoverable` says whether the same verb may succeed later. `facts` holds the further
    fields of contract section 11 under their JSON names (taskId, subtaskId, worktree, …).
    """

    def __init__(
        self,
        code: str,
        message: str,
        kept: str | None = None,
        next: str | None = None,
        stage: str | None = None,
        recoverable: bool = True,
        problems: tuple[Problem, ...] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        assert code in CODES, code
        super().__init__(message)
        self.code = code
        self.message = message
        self.kept = kept
        self.next = next
        self.stage = stage
        self.recoverable = recoverable
        self.problems = problems
        self.facts: Mapping[str, Any] = facts if facts is not None else {}

    def __str__(self) -> str:
        return self.message

    @property
    def exit_code(self) -> int:
        return _EXIT_CODES.get(self.code, EXIT_REFUSED)
