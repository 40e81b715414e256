"""Writes the pages that are made from tables of the program: verbs.md, errors.md, states.md, adapters.md, mcp.md.

    python docs/generate.py

`tests/cli/test_docs.py` compares the pages with what this would write.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from coordinate_agents.graph import states
from coordinate_agents.graph.errors import CODES, GraphError
from coordinate_agents.graph.frontier import PLACES
from coordinate_agents.graph.operations.table import VERBS, Param, Verb
from coordinate_agents.graph.single_task import Standing, single_task_state
from coordinate_agents.sessions.turns.states import TRANSITIONS

# Sentences of a table stand on one line each.
# ruff: noqa: E501

FOLDER: Final = Path(__file__).resolve().parent
_MADE: Final = "<!-- Made by docs/generate.py from the program's own tables; changes here are lost. -->"

GROUPS: Final = {
    "begin": "Begin",
    "run": "Run",
    "look": "Look",
    "change": "Change",
    "task": "Single Tasks",
    "session": "Sessions",
    "set up": "Set up",
}

STANDINGS: Final = (
    ("was never dispatched, and has only a title", Standing("idle", has_spec=False)),
    ("was never dispatched, and a person holds it (`graph-hold`)", Standing("idle", is_held=True)),
    ("was never dispatched, and has a text", Standing("idle")),
    ("was made ready again", Standing("idle", was_dispatched=True)),
    (
        "was verified, and a review asked for changes that were not dispatched yet",
        Standing("idle", was_dispatched=True, is_rework=True),
    ),
    ("runs: base, worktree, setup, the start of its Session", Standing("running", "setup", "preparing", True)),
    ("runs: its Session has the turn, whatever that waits for", Standing("running", "turn", "working", True)),
    ("runs: its turn is over and is verified", Standing("running", "verify", "verifying", True)),
    ("succeeded, and nobody approved the verified commit", Standing("succeeded", was_dispatched=True)),
    ("succeeded, and a review approved that very commit", Standing("succeeded", was_dispatched=True, is_approved=True)),
    ("failed", Standing("failed", was_dispatched=True)),
    ("was stopped, or interrupted", Standing("stopped", was_dispatched=True)),
)

EXITS: Final = {
    0: "done",
    1: "refused: nothing was changed, or the verb could not do what was asked",
    2: "bad usage, or a document that is not valid",
    3: "a bug of ours; the traceback is in the file that is named",
    4: "ended, and a subtask or the integration did not succeed",
    5: "needs a person: input, login, quota, conflict, review, trust",
    6: "the wait timed out",
    130: "interrupted",
}

MEANINGS: Final[Mapping[str, str]] = {
    "AGENT_EXIT_NONZERO": "An agent ended with an exit code other than 0, or by a signal.",
    "AGENT_MAY_NOT": "A verb that changes something was started inside an agent or one of the Runtime's worktrees.",
    "AGENT_TIMEOUT": "An attempt took longer than its `timeout`, or was silent longer than `idleTimeout` with `onIdle: stop`.",
    "AUTH_REQUIRED": "An agent needs a login.",
    "AWAITING_INPUT": "An agent waits for an answer of a person.",
    "BASE_CONFLICT": "The verified commits of a subtask's prerequisites cannot be merged ([now what](conflicts.md)).",
    "CHECK_FAILED": "A check that the Runtime ran did not pass.",
    "CLEANUP_REFUSED": "A worktree holds what exists nowhere else, is in use, or is not provably the Runtime's.",
    "CONFIG_UNTRUSTED": "The repository's configuration would run something and was not trusted in this version.",
    "DIRTY_WORKTREE": "A worktree has changes that are not committed.",
    "DISK_FULL": "The disk took no more; what was recorded before is whole.",
    "DISK_LOW": "Less than `minFreeDisk` is free, so nothing new starts.",
    "EVIDENCE_REJECTED": "What an agent left is not the commit that was asked for.",
    "EXECUTABLE_NOT_FOUND": "The configured program is nowhere; every place that was looked at is named.",
    "EXECUTABLE_NOT_RUNNABLE": "The configured program is there and cannot be executed.",
    "INTEGRATION_CONFLICT": "The verified commits cannot be merged into one ([now what](conflicts.md)).",
    "INTENT_SCOPE_DRIFT": "A subtask changed paths outside its `writes`, with `scopePolicy: strict`.",
    "INTERNAL_ERROR": "A bug of ours.",
    "INTERRUPTED": "Ctrl-C; everything recorded so far stays.",
    "INVALID_ADAPTER_CONFIG": "An agent's settings do not fit its adapter.",
    "INVALID_AGENT_CONFIG": "A configuration file is not valid, or a subtask's agent is not known.",
    "INVALID_USAGE": "The words of the command line are not what the verb takes.",
    "LEASE_HELD": "Another process drives this graph; it is named.",
    "NOT_A_REPOSITORY": "The folder is not inside a git repository.",
    "OUTPUT_FAILED": "Standard output is closed or full.",
    "QUOTA_EXHAUSTED": "An agent's quota is used up.",
    "RATE_LIMITED": "An agent's service asks to wait, or cannot be reached.",
    "REPOSITORY_UNSUPPORTED": "The repository, its file system or git itself is one that cannot be worked with safely.",
    "SESSION_CLOSE_FAILED": "Processes of a Session outlived its end; they are named.",
    "SESSION_NOT_FOUND": "There is no such Session.",
    "SESSION_NOT_HEALTHY": "A Session ended, or its host does not answer.",
    "SESSION_START_FAILED": "The host of a Session did not get ready.",
    "SESSION_STATE_CONFLICT": "A Session is not in a state in which this is possible.",
    "SESSION_WRITE_FAILED": "A Session did not take what was written to it.",
    "SETUP_FAILED": "A `setup` command failed, or changed tracked files.",
    "SHARED_STATE_CHANGED": "Configuration, hooks or other git state that runs code was changed while agents worked.",
    "SPAWN_FAILED": "A program could not be started.",
    "STALE_CLAIM": "Another driver took over; this one changed nothing.",
    "STATE_TAMPERED": "The state is not as the Runtime left it; it is only read.",
    "TASK_ALREADY_RUNNING": "The subtask runs already.",
    "TASK_GRAPH_INVALID": "The graph file is not valid; every problem is listed with line and column.",
    "TASK_NOT_FOUND": "There is no such graph or subtask; the known ones are named.",
    "TASK_STATE_CONFLICT": "Not possible in the present state, which is named.",
    "UNSUPPORTED_CAPABILITY": "Not supported by this agent, driver or version.",
    "WAIT_TIMED_OUT": "What was waited for did not come in time.",
    "WORKTREE_CONFLICT": "A path, branch or worktree is in the way, or is not as the Runtime made it.",
}


def pages() -> dict[str, str]:
    """Every page by file name."""
    man = "\n".join(_man()) + "\n"
    makers = {"verbs.md": _verbs, "errors.md": _errors, "states.md": _states, "adapters.md": _adapters, "mcp.md": _mcp}
    made = {name: "\n".join([_MADE, *make()]) + "\n" for name, make in makers.items()}
    return {**made, "man/coordinate-agents.1": man, "man/cag.1": ".so man1/coordinate-agents.1\n"}


def _man() -> Iterator[str]:
    sys.path.insert(0, str(FOLDER))
    from man_page import lines

    yield from lines(EXITS)


def _adapters() -> Iterator[str]:
    # Beside this file, which is also loaded by its path.
    sys.path.insert(0, str(FOLDER))
    from adapters_page import lines

    yield from lines()


def _mcp() -> Iterator[str]:
    sys.path.insert(0, str(FOLDER))
    from mcp_page import lines

    yield from lines()


def _verbs() -> Iterator[str]:
    yield "# Verbs"
    yield ""
    yield "`coordinate-agents VERB [ARGUMENTS] [--root DIR] [--json]`, also installed as `cag`. The prefix `graph-` may be"
    yield "left out: `cag run plan.yaml`. GRAPH may be left out when exactly one graph is unfinished; GRAPH/SUBTASK and, then,"
    yield "SUBTASK alone are understood where a subtask is meant. With `--json` stdout holds exactly one document."
    for group, heading in GROUPS.items():
        yield from ("", f"## {heading}", "", "| verb | what it does |", "|---|---|")
        for verb in VERBS:
            if verb.group == group:
                yield f"| {_usage(verb)} | {verb.summary}{_options(verb)} |"


def _usage(verb: Verb) -> str:
    words = [f"**{verb.name}**"]
    for param in verb.params:
        if param.positional:
            words.append(param.name.upper() if param.required else f"[{param.name.upper()}]")
    return " ".join(words)


def _options(verb: Verb) -> str:
    lines = [f"<br>`{_option(param)}` {_cell(param.help)}" for param in verb.params if not param.positional]
    return "".join(lines)


def _option(param: Param) -> str:
    match param.kind:
        case "flag":
            return f"--{param.name}"
        case "choice":
            return f"--{param.name} {'/'.join(param.choices)}"
        case _:
            return f"--{param.name} {param.kind.upper()}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _errors() -> Iterator[str]:
    yield "# Errors"
    yield ""
    yield "An error is three lines on stderr: what happened, `Kept:`, `Next:` (a command to paste where there is one). With"
    yield '`--json` it is `{"ok": false, "command": …, "error": {"code", "message", "recoverable", "stage", "kept", "next", …}}`.'
    yield from ("", "## Exit codes", "", "| code | meaning |", "|---|---|")
    for code, meaning in EXITS.items():
        yield f"| {code} | {meaning} |"
    yield from ("", "## Codes", "", "| code | exit | meaning |", "|---|---|---|")
    for name in sorted(CODES):
        yield f"| `{name}` | {GraphError(name, '').exit_code} | {_cell(MEANINGS[name])} |"


def _states() -> Iterator[str]:
    yield "# States"
    yield ""
    yield "A subtask's place is computed at every look: **WAITING** for a prerequisite, **READY** to start, **BLOCKED** by one"
    yield "that failed, stopped, is blocked, does not merge or is gone from git, **RUNNING**, **SUCCEEDED**, **FAILED**, **STOPPED**. Stored are"
    yield "only `idle`, `running`, `succeeded`, `failed` and `stopped`."
    yield from ("", "## Which event is legal in which stored state of a subtask", "")
    yield from _table(states.TASK_EVENTS, ("idle", "running", "succeeded", "failed", "stopped"))
    yield from ("", "## Which event is legal in which state of the integration", "")
    yield from _table(states.INTEGRATION_EVENTS, ("none", "merging", "conflict", "checking", "failed", "integrated"))
    yield from ("", "An event that its table does not list changes nothing and is an error that names both.", "")
    yield "## The state of a graph"
    yield ""
    yield "Computed from the subtasks, the integration, its review and whether somebody drives the graph. An integration of other"
    yield "commits than the present verified ones counts as none, and so does a review of another commit than the integrated one."
    yield from (
        "",
        "| driven, or a subtask runs | subtasks | ever started | integration | review | graph |",
        "|---|---|---|---|---|---|",
    )
    yield from _graph_states()
    yield from _single_task_states()
    yield from _turn_states()


def _turn_states() -> Iterator[str]:
    yield from ("", "## The turns of a Session", "")
    yield "What leads from one state of a Session's turns to which other ([what the states mean](sessions.md#turns)). What a state"
    yield "does not list does nothing in it: a request is refused, a fact is dropped."
    yield from ("", "| state | what happens | next state |", "|---|---|---|")
    for state, following in TRANSITIONS.items():
        for trigger, after in following.items():
            yield f"| {state} | {trigger} | {after} |"


def _single_task_states() -> Iterator[str]:
    yield from ("", "## The state of a single Task", "")
    yield "Of a graph with one subtask, as the task verbs show it: computed from what is recorded of that subtask, and stored nowhere."
    yield from ("", "| the subtask | Task |", "|---|---|")
    yield from (f"| {words} | {single_task_state(standing)} |" for words, standing in STANDINGS)


def _table(events: Mapping[str, frozenset[str]], columns: tuple[str, ...]) -> Iterator[str]:
    yield f"| event | {' | '.join(columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    for event, legal in events.items():
        unknown = legal - set(columns)
        assert not unknown, unknown
        yield f"| {event} | {' | '.join('x' if column in legal else '' for column in columns)} |"


def _graph_states() -> Iterator[str]:
    """Every combination that differs, asked of the function itself."""
    mixes = {
        "all succeeded": {"succeeded": 2},
        "one failed": {"succeeded": 1, "failed": 1},
        "one blocked by a base conflict": {"succeeded": 1, "blocked": 1},
        "one stopped": {"succeeded": 1, "stopped": 1},
        "one stopped, one blocked": {"stopped": 1, "blocked": 1},
        "one ready": {"succeeded": 1, "ready": 1},
    }
    integrations: tuple[states.IntegrationState, ...] = (
        "none", "merging", "conflict", "checking", "failed", "integrated",
    )  # fmt: skip
    reviews: tuple[states.ReviewState, ...] = ("none", "open", "changes", "approved")
    yield "| yes | any | any | any | any | RUNNING |"
    for words, mix in mixes.items():
        places = dict.fromkeys(PLACES, 0) | mix
        for started in (False, True):
            # Reviews under which the same integrations lead to the same state share a row.
            rows: dict[tuple[str, tuple[str, ...]], list[str]] = {}
            for review in reviews:
                found: dict[str, list[str]] = {}
                for integration in integrations:
                    state = states.graph_state(
                        places={str(place): count for place, count in places.items()},
                        integration=integration,
                        review=review,
                        is_driven=False,
                        was_started=started,
                    )
                    found.setdefault(state, []).append(integration)
                for state, which in found.items():
                    rows.setdefault((state, tuple(which)), []).append(review)
            for (state, which), decided in rows.items():
                merged, judged = _any(which, integrations), _any(decided, reviews)
                yield f"| no | {words} | {'yes' if started else 'no'} | {merged} | {judged} | {state} |"


def _any(which: Sequence[str], every: Sequence[str]) -> str:
    return "any" if len(which) == len(every) else ", ".join(which)


if __name__ == "__main__":
    for file, text in pages().items():
        (FOLDER / file).parent.mkdir(exist_ok=True)
        (FOLDER / file).write_text(text, encoding="utf-8")
