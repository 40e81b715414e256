"""The verbs: names, parameters and the module that carries each out. CLI and MCP are both made from this table.

Modules are named by string and imported only when their verb is chosen: a read verb loads neither networkx nor
pydantic. Each module has a frozen dataclass `Request` whose fields are the parameters below (snake_case), and
`execute(runtime, request)` which returns a `Result`. A verb without a repository gets None for the runtime.

Every call of the program imports this module and makes its values. Named tuples are as frozen as dataclasses and cost
a fifth: importing `dataclasses` alone takes longer than everything else that a read verb does.
"""

from collections.abc import Iterator
from keyword import iskeyword
from typing import Any, Final, Literal, NamedTuple

_OPERATIONS: Final = "coordinate_agents.graph.operations"
# Verbs about this machine and its configuration, which only the edge knows.
_SETUP: Final = "coordinate_agents.cli.setup"


class Param(NamedTuple):
    """One argument or option, named as on the command line; a positional one has no leading dashes there.

    kind: text, path (a file to read, ``-`` is standard input), flag, integer, duration (seconds as a float), choice
    (see `choices`). A positional one with `multiple` takes all that is left, as a tuple.
    `takes_file`: a text that may also name a graph file, or standard input.
    """

    name: str
    help: str
    kind: Literal["text", "path", "flag", "integer", "duration", "choice"] = "text"
    positional: bool = False
    required: bool = False
    multiple: bool = False
    choices: tuple[str, ...] = ()
    default: Any = None
    takes_file: bool = False

    @property
    def field(self) -> str:
        """The field of Request: snake_case; a word that Python reserves ends in an underscore (``for_``)."""
        return _python_name(self.name)


class Verb(NamedTuple):
    """`access`: none (no repository), optional (a repository is looked at when there is one), read (database opened
    read-only), write.

    `group` is the heading under which help lists it. `is_quick`: it looks at records only and answers at once (or waits
    where it was asked to), so an MCP server needs no process of its own for it. What a client is told before it calls:
    `is_destructive`, it may end or remove something; `is_repeatable`, once more with the same words changes nothing
    further.
    """

    name: str
    summary: str
    access: Literal["none", "optional", "read", "write"]
    params: tuple[Param, ...] = ()
    group: Literal["begin", "run", "look", "change", "task", "session", "set up"] = "look"
    is_quick: bool = False
    is_destructive: bool = False
    is_repeatable: bool = False

    @property
    def short_name(self) -> str:
        return self.name.removeprefix("graph-")

    @property
    def module(self) -> str:
        package = _SETUP if self.group == "set up" else _OPERATIONS
        return f"{package}.{_python_name(self.short_name.removeprefix('setup-'))}"


class Result(NamedTuple):
    """What a verb answers. `data` is the JSON document's data (contract section 13).

    `stream`: what comes afterwards, one object at a time, until it ends or the reader goes away; then `data` is not
    shown at all.
    """

    data: dict[str, Any]
    exit_code: int = 0
    stream: Iterator[dict[str, Any]] | None = None


def _python_name(name: str) -> str:
    name = name.replace("-", "_")
    return f"{name}_" if iskeyword(name) else name


GRAPH: Final = Param("graph", "graph id; may be left out when exactly one is unfinished", positional=True)
SUBTASK: Final = Param("subtask", "subtask id", positional=True)
TASK: Final = Param("task", "id of the Task; may be left out when exactly one is unfinished", positional=True)
SESSION: Final = Param("session", "Session id, or GRAPH/SUBTASK", positional=True, required=True)
FILE: Final = Param("file", "graph file; - reads standard input", kind="path", positional=True, required=True)
KEEP_MARKERS: Final = Param("keep-markers", "lines that look like conflict markers may stay", kind="flag")
WORKTREE_ROOT: Final = Param("worktree-root", "folder for worktrees, outside the checkout", kind="text")

VERBS: Final[tuple[Verb, ...]] = (
    Verb("graph-init", "print a commented starter graph file for this repository", "optional", group="begin"),
    Verb("graph-validate", "check a graph file and report every problem at once", "none", (FILE,), group="begin"),
    Verb("graph-schema", "print the JSON Schema of graph files", "none", group="begin"),
    Verb(
        "graph-import",
        "print a graph file made from a Task Graph v1 JSON file",
        "none",
        (FILE, Param("intent-map", "companion file with the write intents", kind="path")),
        group="begin",
    ),
    Verb(
        "graph-plan",
        "show what would start now, what waits and why; changes nothing",
        "read",
        (
            Param("graph", "graph id, or a graph file that was not created yet", positional=True, takes_file=True),
            Param(
                "format",
                "text, or a picture with the longest chain marked",
                kind="choice",
                choices=("text", "mermaid", "dot"),
                default="text",
            ),
        ),
        group="begin",
    ),
    Verb(
        "graph-create",
        "record a graph: validate, resolve its base, freeze the configuration",
        "write",
        (FILE, Param("as", "id to use instead of the file's"), WORKTREE_ROOT),
        group="run",
        is_repeatable=True,
    ),
    Verb(
        "graph-amend",
        "take over a changed graph file: add subtasks, change or drop what never started; a driver goes on with it",
        "write",
        (
            Param("graph", "graph id", positional=True, required=True),
            FILE,
            Param("base", "newer commit that everything which has not started is built on"),
            Param("as", "id of the graph, where the file has another one"),
            Param("dry-run", "only say what would change", kind="flag"),
        ),
        group="change",
        is_repeatable=True,
    ),
    Verb(
        "graph-run",
        "create if needed, then drive the graph to its end",
        "write",
        (
            Param(
                "graph",
                "graph file or graph id; may be left out when exactly one is unfinished",
                positional=True,
                takes_file=True,
            ),
            Param("spec", "run one subtask with this text instead of a graph file"),
            Param("check", "command that must pass on the result of --spec; repeat for several", multiple=True),
            Param("agent", "who works on --spec (default: the one that a graph without a word about it gets)"),
            Param("as", "id to use instead of the file's, so that the same file runs once more"),
            Param("integrate", "integrate when every subtask succeeded", kind="flag"),
            Param("until", "stop after this subtask and what it needs"),
            Param("retry-failed", "first make failed and stopped subtasks ready again", kind="flag"),
            Param("max-starts", "start at most so many subtasks", kind="integer"),
            Param("detach", "go on in the background and return at once", kind="flag"),
            Param(
                "on-input",
                "what to do when an agent waits for a person (default: wait; fail when CI=true)",
                kind="choice",
                choices=("wait", "fail"),
            ),
            Param("deadline", "stop everything after this time", kind="duration"),
            Param(
                "artefacts",
                "folder for status, events, JUnit XML, check logs, patches, a report and a bundle, however it ends",
            ),
            Param("stop-on-exit", "close the agents when this command ends", kind="flag"),
            Param("take-over", "first end the process that drives the graph, though it be stopped", kind="flag"),
            Param("nested", "allow this inside a subtask of another run", kind="flag"),
            WORKTREE_ROOT,
        ),
        group="run",
    ),
    Verb(
        "graph-wait",
        "wait for the end, for something that needs a person, or for one subtask",
        "read",
        (
            GRAPH,
            Param("for", "end, attention or a subtask id (default: end)", default="end"),
            Param("timeout", "give up after this time with exit code 6", kind="duration"),
        ),
        group="run",
        is_quick=True,
    ),
    Verb(
        "graph-watch",
        "a live view with keys to attach, answer, tell, stop and look; leaving it ends nothing",
        "read",
        (GRAPH,),
        group="look",
    ),
    Verb(
        "graph-dispatch",
        "start one ready subtask and return",
        "write",
        (GRAPH, SUBTASK),
        group="run",
    ),
    Verb(
        "graph-resume",
        "make failed, stopped or interrupted subtasks ready again",
        "write",
        (
            GRAPH,
            SUBTASK,
            Param("redo", "also a subtask that succeeded, with all that was built on it", kind="flag"),
            Param("say", "words for the agent's next prompt; - reads standard input"),
            Param(
                "from",
                "the kept worktree and branch (default), or a fresh base; what is there is set aside first",
                kind="choice",
                choices=("branch", "base"),
            ),
            Param("agent", "configured agent that does it from now on"),
            Param("run", "drive the graph afterwards", kind="flag"),
            Param("accept-shared", "accept the changed shared git state of this fingerprint"),
        ),
        group="change",
    ),
    Verb(
        "graph-recover",
        "compare the records with the world; verify what ended meanwhile; start nothing",
        "write",
        (GRAPH, SUBTASK),
        group="change",
        is_repeatable=True,
    ),
    Verb(
        "graph-check",
        "verify what is in a subtask's worktree now, and start nothing",
        "write",
        (GRAPH, SUBTASK),
        group="change",
    ),
    Verb(
        "graph-accept",
        "verify it with named failures accepted by you, for the record",
        "write",
        (
            GRAPH,
            SUBTASK,
            Param("reason", "why, for the record", required=True),
            Param("waive", "check or fact whose failure is accepted; repeat for several", required=True, multiple=True),
        ),
        group="change",
        is_repeatable=True,
    ),
    Verb(
        "graph-tell",
        "say something to a subtask's agent: now where it can be typed, else as its next turn",
        "write",
        (GRAPH, SUBTASK, Param("text", "the words; - reads standard input", positional=True)),
        group="change",
    ),
    Verb(
        "graph-hold",
        "let nothing start, type or verify while you work in a subtask's worktree",
        "write",
        (GRAPH, SUBTASK),
        group="change",
        is_repeatable=True,
    ),
    Verb(
        "graph-release",
        "end a hold; what stood still goes on",
        "write",
        (GRAPH, SUBTASK),
        group="change",
        is_repeatable=True,
    ),
    Verb(
        "graph-stop",
        "close the Sessions that the Runtime owns",
        "write",
        (
            GRAPH,
            SUBTASK,
            Param("drain", "only start nothing new", kind="flag"),
            Param("reason", "why, for the record"),
        ),
        group="change",
        is_destructive=True,
        is_repeatable=True,
    ),
    Verb(
        "graph-integrate",
        "merge the verified commits and check the result",
        "write",
        (
            GRAPH,
            Param("onto", "commit to build on instead of the graph's base"),
            Param("continue", "take the merge that is finished in its worktree, and go on", kind="flag"),
            Param("abort", "go back to the last good integration; what was there is kept", kind="flag"),
            KEEP_MARKERS,
        ),
        group="change",
        is_destructive=True,
    ),
    Verb(
        "graph-resolve",
        "merge by hand what the base of a subtask cannot be made of",
        "write",
        (
            GRAPH,
            SUBTASK,
            Param("continue", "take the merge that is finished there", kind="flag"),
            Param("abort", "take the merge back; what was there is kept", kind="flag"),
            KEEP_MARKERS,
        ),
        group="change",
        is_destructive=True,
    ),
    Verb(
        "graph-review",
        "look at what is integrated, approve exactly that commit, or ask subtasks for changes",
        "write",
        (
            GRAPH,
            SUBTASK,
            Param("and", "another subtask that is asked for changes; repeat for several", multiple=True),
            Param(
                "decision",
                "without it the review is opened and shown",
                kind="choice",
                choices=("REVIEW_APPROVED", "CHANGES_REQUESTED"),
            ),
            Param("commit", "the commit that the decision is about; refused when another one stands now"),
            Param("feedback", "what has to be changed; - reads standard input"),
            Param("feedback-file", "a file that says it", kind="path"),
        ),
        group="change",
    ),
    Verb(
        "graph-deliver",
        "let one branch of yours hold what is integrated; print how to publish it; push nothing",
        "write",
        (
            GRAPH,
            Param("branch", "a new branch, or one that only moves forward and is checked out nowhere", required=True),
            Param("squash", "one commit in your name instead of the history", kind="flag"),
        ),
        group="change",
        is_repeatable=True,
    ),
    Verb(
        "graph-cleanup",
        "remove the worktrees of ended subtasks; what holds something unsaved stays, with the reason",
        "write",
        (
            GRAPH,
            SUBTASK,
            Param("dry-run", "only say what would go, with sizes, and what would stay and why", kind="flag"),
            Param("branches", "also delete their branches; every commit stays pinned", kind="flag"),
            Param("all", "also the integration's worktree and what killed checks left", kind="flag"),
            Param("early", "although the integration was not approved yet", kind="flag"),
            Param("discard", "set everything in this subtask's worktree aside as a commit, then remove it"),
            Param("confirm", "the token that --discard showed: do it"),
        ),
        group="change",
        is_destructive=True,
    ),
    Verb(
        "graph-undo",
        "bring removed worktrees back, with everything that was set aside",
        "write",
        (GRAPH, SUBTASK),
        group="change",
    ),
    Verb(
        "graph-forget",
        "drop what the Sessions of an ended, cleaned graph printed, and leave it out of graph-list",
        "write",
        (
            Param("graph", "graph id", positional=True, required=True),
            Param("pins", "also drop its pins: commits that nothing else holds are lost at git's next gc", kind="flag"),
            Param("dry-run", "only say what would go", kind="flag"),
        ),
        group="change",
        is_destructive=True,
    ),
    Verb("graph-list", "list the graphs of this repository", "read", is_quick=True),
    Verb(
        "graph-status",
        "show where every subtask stands, what needs a person first",
        "read",
        (
            GRAPH,
            Param("brief", "few bytes: the state, a cursor, and what changed", kind="flag"),
            Param("since", "only what changed after this cursor (brief)", kind="integer"),
            Param("wait", "wait so long for a change, at most 25s (brief)", kind="duration"),
        ),
        is_quick=True,
    ),
    Verb(
        "graph-inspect",
        "show everything known of a graph or one subtask",
        "read",
        (
            GRAPH,
            SUBTASK,
            Param("part", "only this part", kind="choice", choices=("failure", "screen", "diff", "events")),
        ),
        is_quick=True,
    ),
    Verb(
        "graph-why",
        "explain where a subtask stands: the chain of facts behind it, each with its event and what to do",
        "read",
        (GRAPH, SUBTASK),
        is_quick=True,
    ),
    Verb(
        "graph-events",
        "show the event log",
        "read",
        (
            GRAPH,
            SUBTASK,
            Param("after", "only events after this number", kind="integer"),
            Param("limit", "at most so many (default: the last 1000)", kind="integer"),
            Param("follow", "go on as events come; with --json one object per line", kind="flag"),
        ),
        is_quick=True,
    ),
    Verb("graph-diff", "show what the subtasks changed, each against its own base", "read", (GRAPH, SUBTASK)),
    Verb("graph-path", "print the worktree path of a subtask", "read", (GRAPH, SUBTASK), is_quick=True),
    Verb(
        "graph-export",
        "print the whole record of a graph, or its picture",
        "read",
        (
            GRAPH,
            Param("format", "json, dot or mermaid", kind="choice", choices=("json", "dot", "mermaid"), default="json"),
        ),
    ),
    Verb(
        "graph-report",
        "a page to mail: pictures of the graph and of its time, what set the end, waits, evidence, failures",
        "read",
        (
            GRAPH,
            Param("output", "file to write it to (default: standard output)"),
            Param("format", "default: by the file's ending, else html", kind="choice", choices=("html", "markdown")),
        ),
    ),
    Verb("graph-verify", "re-check every certificate from git alone", "read", (GRAPH,)),
    Verb(
        "recover-inspect",
        "show what a recovery would find: Sessions, worktrees, branches, as facts; records nothing",
        "read",
        (Param("graph", "graph or Task id (default: every unfinished one)", positional=True), SUBTASK),
    ),
    Verb(
        "task-create",
        "record one piece of work as a Task: a graph of one subtask",
        "write",
        (
            Param("spec", "what is to be done; - reads standard input", positional=True),
            Param("title", "a line for lists (default: the first line of the text)"),
            Param("as", "id of the Task (default: made from the text)"),
            Param("agent", "configured agent that does it"),
            Param("base", "commit to start from (default: HEAD)"),
            Param("writes", "pattern of paths that it may change; repeat for several", multiple=True),
            Param("check", "command that must pass on the result; repeat for several", multiple=True),
            Param(
                "isolation",
                "where the agent works: a worktree of its own; your checkout is refused, with the reason",
                kind="choice",
                choices=("worktree", "checkout"),
                default="worktree",
            ),
            WORKTREE_ROOT,
        ),
        group="task",
        is_repeatable=True,
    ),
    Verb(
        "task-dispatch",
        "give a Task to its agent, or send the requested changes into its Session; then leave it to be awaited",
        "write",
        (TASK, Param("grace", "wait so long for an end that comes at once (default: 10s)", kind="duration")),
        group="task",
    ),
    Verb(
        "task-status",
        "show where a Task stands",
        "read",
        (
            TASK,
            Param("brief", "few bytes: the state, a cursor, and what changed", kind="flag"),
            Param("since", "only what changed after this cursor (brief)", kind="integer"),
            Param("wait", "wait so long for a change, at most 25s (brief)", kind="duration"),
        ),
        group="task",
        is_quick=True,
    ),
    Verb(
        "task-inspect",
        "show everything known of a Task",
        "read",
        (TASK, Param("part", "only this part", kind="choice", choices=("failure", "screen", "diff", "events"))),
        group="task",
        is_quick=True,
    ),
    Verb(
        "task-review",
        "look at a Task's verified work, approve exactly that commit, or ask for changes",
        "write",
        (
            TASK,
            Param(
                "decision",
                "without it the work is shown",
                kind="choice",
                choices=("REVIEW_APPROVED", "CHANGES_REQUESTED"),
            ),
            Param("commit", "the commit that the decision is about; refused when another one stands now"),
            Param("feedback", "what has to be changed; - reads standard input"),
            Param("feedback-file", "a file that says it", kind="path"),
        ),
        group="task",
    ),
    Verb(
        "task-resume",
        "come back to a Task: record what ended, await again what runs, ready what failed; start no agent",
        "write",
        (
            TASK,
            Param("say", "words for the agent's next prompt; - reads standard input"),
            Param(
                "from",
                "the kept worktree and branch (default), or a fresh base; what is there is set aside first",
                kind="choice",
                choices=("branch", "base"),
            ),
            Param("agent", "configured agent that does it from now on"),
        ),
        group="task",
        is_repeatable=True,
    ),
    Verb(
        "task-stop",
        "await and verify nothing more of a Task; its Session is left as it is",
        "write",
        (TASK, Param("reason", "why, for the record")),
        group="task",
        is_repeatable=True,
    ),
    Verb(
        "session-open",
        "open an agent's terminal, or return the healthy one that fits",
        "write",
        (
            Param("subtask", "GRAPH/SUBTASK whose worktree it works in (default: the checkout)", positional=True),
            Param("agent", "agent identity (default: the subtask's, else the configuration's)"),
            Param("say", "text that is written to it once it is ready; - reads standard input"),
        ),
        group="session",
        is_repeatable=True,
    ),
    Verb(
        "session-list",
        "list the Sessions that live",
        "read",
        (
            Param("graph", "only this graph's", positional=True),
            Param("all", "also those that ended, and the Runtime's own commands", kind="flag"),
        ),
        group="session",
        is_quick=True,
    ),
    Verb(
        "session-status",
        "show what is known of a Session and whether it is alive",
        "read",
        (SESSION,),
        group="session",
        is_quick=True,
    ),
    Verb(
        "session-inspect",
        "show a Session with its last output, its question and its subtask's evidence",
        "read",
        (SESSION, Param("screen", "the terminal as a person would see it", kind="flag")),
        group="session",
        is_quick=True,
    ),
    Verb(
        "session-read",
        "print what a Session wrote; works after its end, too",
        "read",
        (
            SESSION,
            Param("cursor", "from here on: the nextCursor of an earlier read (default: the end)", kind="integer"),
            Param("max-bytes", "at most so many bytes (default: 65536)", kind="integer"),
            Param("max-lines", "at most so many lines", kind="integer"),
            Param("wait", "wait so long for output after the cursor, at most 25s", kind="duration"),
            Param("raw", "keep control sequences; shown as escapes on a terminal", kind="flag"),
            Param("follow", "go on until it ends; with --json one object per line", kind="flag"),
        ),
        group="session",
        is_quick=True,
    ),
    Verb(
        "session-write",
        "type into a Session: text, then named keys",
        "write",
        (
            SESSION,
            Param("text", "the text; - reads standard input", positional=True),
            Param("keys", 'named keys after it, such as "Down Enter"'),
            Param("submit", "send the text off, the agent's way", kind="flag"),
        ),
        group="session",
    ),
    Verb(
        "session-answer",
        "answer the question that a Session asks",
        "write",
        (
            SESSION,
            Param("request", "id of the question, as session-status shows it"),
            Param("allow", "yes", kind="flag"),
            Param("deny", "no", kind="flag"),
            Param("option", "choose this option"),
            Param("text", "answer with this text"),
        ),
        group="session",
    ),
    Verb(
        "session-interrupt",
        "interrupt what a Session does, as Ctrl-C would",
        "write",
        (SESSION,),
        group="session",
        is_destructive=True,
    ),
    Verb(
        "session-attach",
        "join this terminal to a Session's; its subtask is held while you may type",
        "write",
        (
            SESSION,
            Param("read-only", "look, never type", kind="flag"),
            Param("raw", "pass every control sequence to this terminal: trust the agent with it", kind="flag"),
            Param("detach-key", "key that leaves the Session running (default: C-])"),
        ),
        group="session",
    ),
    Verb(
        "session-close",
        "end a Session with everything that it started; what survives is listed",
        "write",
        (
            SESSION,
            Param("bound", "time limit for the whole, 0.1s to 60s", kind="duration"),
            Param("now", "without asking politely first", kind="flag"),
        ),
        group="session",
        is_destructive=True,
        is_repeatable=True,
    ),
    Verb(
        "setup-configure",
        "write an agent into a configuration file: validated, whole or not at all",
        "optional",
        (
            Param("agent", "identity of the agent to add or change"),
            Param("adapter", "kind of agent, such as codex, claude or generic"),
            Param("command", "its program: a path or a name on PATH"),
            Param("arg", "an argument of a turn; repeat for several", multiple=True),
            Param("mode", "a program that ends, or one that stays", kind="choice", choices=("oneshot", "interactive")),
            Param(
                "delivery",
                "how it gets its prompt",
                kind="choice",
                choices=("argument", "stdin", "file", "paste"),
            ),
            Param("driver", "what it runs on", kind="choice", choices=("pty", "pipe", "acp")),
            Param("permissions", "what it may do", kind="choice", choices=("ask", "edits", "allow", "deny")),
            Param("commit", "who commits", kind="choice", choices=("agent", "runtime", "auto")),
            Param("env", "NAME=VALUE for its environment; repeat for several", multiple=True),
            Param("default-agent", "the agent of subtasks that name none"),
            Param("remove", "remove the agent instead", kind="flag"),
            Param("project", "write the repository's file", kind="flag"),
            Param("user", "write the user's file (default)", kind="flag"),
            Param("dry-run", "only show the change", kind="flag"),
        ),
        group="set up",
        is_destructive=True,
        is_repeatable=True,
    ),
    Verb(
        "setup-trust",
        "look at what this repository's configuration may run, and trust it",
        "write",
        (
            Param("yes", "trust it without being asked", kind="flag"),
            Param("digest", "only this version of the file (SHA-256)"),
        ),
        group="set up",
        is_repeatable=True,
    ),
    Verb(
        "setup-discover",
        "list the agents that are configured or found, and what would be started",
        "optional",
        group="set up",
    ),
    Verb(
        "doctor",
        "check git, Python, file systems, configuration, agents and leftovers",
        "optional",
        (Param("live", "also try this agent in a scratch repository: login, trust, commit, delivery"),),
        group="set up",
    ),
    Verb(
        "completion",
        "print the script that lets a shell complete verbs, options, graphs and subtasks",
        "none",
        (
            Param(
                "shell",
                "bash, zsh, fish or powershell (default: the one in SHELL)",
                kind="choice",
                positional=True,
                choices=("bash", "zsh", "fish", "powershell"),
            ),
        ),
        group="set up",
    ),
    Verb(
        "mcp",
        "serve these verbs as MCP tools on standard input and output, for one repository",
        "optional",
        (
            Param(
                "tools",
                "which tools (default: all)",
                kind="choice",
                choices=("all", "core", "session", "graph", "task"),
                default="all",
            ),
            Param(
                "allow-decisions",
                "let clients decide, too: all, or some of review, accept, discard, take-over and trust, with commas",
            ),
        ),
        group="set up",
    ),
    Verb(
        "evidence-submit",
        "say from inside a Session that its subtask's work is committed and ready to be verified",
        "read",
        (
            Param("summary", "what was done, in a few sentences, for whoever goes on", positional=True),
            Param("graph", "only if this Session works for this graph"),
            Param("subtask", "only if this Session works for this subtask"),
            Param("attempt", "only if this is the subtask's attempt", kind="integer"),
        ),
        group="session",
        is_repeatable=True,
    ),
)


def verb_named(name: str) -> Verb | None:
    """The verb of this name, with or without the prefix ``graph-``."""
    for verb in VERBS:
        if name in (verb.name, verb.short_name):
            return verb
    return None
