"""What a verb's data looks like to a person: one function per verb, found by name and imported when needed.

Every function takes the JSON data and returns lines. They choose and order; they compute nothing that the data lacks.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

Lines = Sequence[str]

_STATUS: Final = "render_status:status"
_RENDERERS: Final[Mapping[str, str]] = {
    "graph-status": _STATUS,
    "graph-run": _STATUS,
    "graph-stop": _STATUS,
    "graph-dispatch": _STATUS,
    "graph-resume": _STATUS,
    "graph-recover": _STATUS,
    "graph-check": _STATUS,
    "graph-accept": _STATUS,
    "graph-tell": _STATUS,
    "graph-hold": _STATUS,
    "graph-release": _STATUS,
    "graph-integrate": "render_conflict:integrated",
    "graph-resolve": "render_conflict:resolved",
    "graph-wait": _STATUS,
    "graph-watch": "render_status:left",
    "graph-cleanup": "render_cleanup:cleanup",
    "graph-undo": "render_cleanup:undone",
    "graph-review": "render_review:review",
    "graph-deliver": "render_delivery:delivered",
    "graph-forget": "render_cleanup:forgotten",
    "graph-list": "render_status:graphs",
    "graph-inspect": "render_inspect:inspect",
    "graph-why": "render_inspect:why",
    "graph-events": "render_inspect:events",
    "graph-diff": "render_inspect:diff",
    "graph-path": "render_setup:path",
    "graph-export": "render_setup:export",
    "graph-report": "render_setup:report",
    "graph-init": "render_setup:document",
    "graph-import": "render_setup:document",
    "graph-schema": "render_setup:as_json",
    "graph-validate": "render_setup:validated",
    "graph-create": "render_setup:created",
    "graph-amend": "render_setup:amended",
    "graph-plan": "render_plan:plan",
    "graph-verify": "render_setup:verified",
    "recover-inspect": "render_task:recovery",
    "task-create": "render_task:task",
    "task-dispatch": "render_task:task",
    "task-status": "render_task:task",
    "task-inspect": "render_task:inspect",
    "task-review": "render_task:review",
    "task-resume": "render_task:task",
    "task-stop": "render_task:task",
    "session-open": "render_session:opened",
    "session-list": "render_session:sessions",
    "session-status": "render_session:status",
    "session-inspect": "render_session:inspect",
    "session-read": "render_session:read",
    "session-write": "render_session:written",
    "session-answer": "render_session:written",
    "session-interrupt": "render_session:interrupted",
    "session-attach": "render_session:attached",
    "session-close": "render_session:closed",
    "setup-configure": "render_setup:configured",
    "setup-trust": "render_setup:trust",
    "setup-discover": "render_setup:agents",
    "completion": "render_setup:script",
    "doctor": "render_setup:doctor",
}


def render(verb: str, data: Mapping[str, Any]) -> Lines:
    """The lines for this verb; its data as JSON when no function was written for it."""
    module, _, name = _RENDERERS.get(verb, "render_setup:as_json").partition(":")
    function: Callable[[Mapping[str, Any]], Lines] = getattr(import_module(f"coordinate_agents.cli.{module}"), name)
    return function(data)
