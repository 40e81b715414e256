"""graph-tell: a person's words to a subtask's agent: typed now where its program takes text, else its next prompt."""

from coordinate_agents.graph.acts.tell import tell
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.asking import by_driver_or_alone
from coordinate_agents.graph.operations.loading import pick_subtask, require_named
from coordinate_agents.graph.operations.status import status_of
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.operations.words import given_words
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.worktrees.values import value_class

# Typing waits for a pause of the program and for its acknowledgement.
_TELL_WAIT_S = 45.0


@value_class
class Request:
    graph: str | None = None
    subtask: str | None = None
    text: str | None = None


def execute(runtime: Runtime, request: Request) -> Result:
    """`told`: now or queued; `delivered` and `reason` of what was typed. Raises: TASK_STATE_CONFLICT, INVALID_USAGE."""
    # GRAPH/SUBTASK TEXT are two words.
    named, text = (request.subtask, request.text) if request.text is not None else (None, request.subtask)
    row, name = pick_subtask(runtime.store, request.graph, named)
    subtask = require_named(row, name)
    words = given_words(text)
    if words is None:
        raise GraphError("INVALID_USAGE", "Say what the agent is to be told; - reads it from standard input.")
    asked = {"subtask": subtask, "text": words}

    told = by_driver_or_alone(runtime, row.id, "tell", asked, tell, verb="graph-tell", wait_s=_TELL_WAIT_S)
    when = "Typed into its terminal" if told["told"] == "now" else "Queued"
    advice = [f"{when}; {told['reason']}." if told["reason"] else f"{when}."]
    return Result({**status_of(runtime, row.id), **told, "about": [subtask], "advice": advice})
