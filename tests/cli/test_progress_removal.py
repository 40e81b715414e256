"""The one line that a terminal shows while worktrees are removed."""

import io

from coordinate_agents.cli.progress_removal import RemovalProgress
from coordinate_agents.graph.events import RemovalRefused, RemovalStarted, WorktreeRemoved
from coordinate_agents.graph.model import GraphId, SubtaskId, TaskGraph
from coordinate_agents.graph.snapshot import Snapshot

A, B = SubtaskId("a"), SubtaskId("b")


def test_the_line_names_what_goes_now_and_is_gone_at_the_end() -> None:
    stream = io.StringIO()
    progress = RemovalProgress(stream)
    snapshot = Snapshot(TaskGraph(GraphId("g"), title="g", tasks=()))
    events = (RemovalStarted(A), RemovalRefused(B, "dirty"), RemovalStarted(B), WorktreeRemoved(A, None))
    for event in (*events, RemovalRefused(B, "in-use")):
        progress.event(snapshot, event, 0.0)
    progress.notice("")
    assert stream.getvalue().split("\r\x1b[K") == [
        "",
        "0 worktrees removed; deleting the files of a",
        "0 worktrees removed; deleting the files of a and b",
        "1 worktree removed; deleting the files of b",
        "",
        "",
    ]
