"""The values that a report of a graph consists of, ready to be laid out. Pure.

Every text in them is safe to show as a line; whoever lays them out escapes it for their own form and nothing more.
"""

from coordinate_agents.graph.ways_out import Way
from coordinate_agents.worktrees.values import value_class


@value_class
class Check:
    name: str
    outcome: str
    exit_code: int | None
    duration_s: float


@value_class
class Change:
    """Between the base and the verified commit, else the last one."""

    files: int
    insertions: int
    deletions: int


@value_class
class Usage:
    """What its agents said that `turns` turns took; None: they did not say."""

    turns: int
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    cost_usd: float | None


@value_class
class Failure:
    code: str
    message: str
    tail: tuple[str, ...]
    ways: tuple[Way, ...]


@value_class
class Evidence:
    """`facts` are those of the last look, each "number name: outcome message"; `waivers` "what, by whom: why"."""

    facts: tuple[str, ...]
    checks: tuple[Check, ...]
    outside_scope: tuple[str, ...]
    warnings: tuple[str, ...]
    waivers: tuple[str, ...]


@value_class
class Bar:
    """One phase of an attempt; times are seconds since the report's `begin`."""

    phase: str
    begin_s: float
    end_s: float
    attempt: int
    note: str


@value_class
class Line:
    """One subtask. `commit` is the verified one, else the last; `elapsed_s` the sum of its stretches."""

    id: str
    title: str
    state: str
    phase: str
    reason: str
    agent: str
    attempt: int
    depends_on: tuple[str, ...]
    branch: str
    commit: str
    is_verified: bool
    elapsed_s: float
    bars: tuple[Bar, ...]
    summary: str
    change: Change | None
    usage: Usage | None
    evidence: Evidence | None
    failure: Failure | None
    is_on_path: bool


@value_class
class Step:
    """One stretch of the chain that set the end. `waited_s` lies between what it waited for and its begin."""

    subtask: str
    attempt: int
    why: str
    waited_s: float
    begin_s: float
    length_s: float
    phases: tuple[tuple[str, float], ...]


@value_class
class Wait:
    subtask: str
    length_s: float
    what: str


@value_class
class Decision:
    at: str
    who: str
    what: str
    subtask: str


@value_class
class Integration:
    state: str
    commit: str
    checks: tuple[Check, ...]
    failure: Failure | None


@value_class
class Attention:
    subtask: str
    kind: str
    question: str
    next: str


@value_class
class Report:
    """`as_of` is the time of event `seq`, the last one. `length_s`: from the first start to there.

    `lines` are in id order, `edges` (prerequisite, dependent); `path_phases` sums the phases along `path`.
    """

    graph: str
    title: str
    state: str
    revision: int
    base: str
    as_of: str
    seq: int
    begin: str
    length_s: float
    max_concurrency: int
    counts: tuple[tuple[str, int], ...]
    attention: tuple[Attention, ...]
    lines: tuple[Line, ...]
    edges: tuple[tuple[str, str], ...]
    path: tuple[Step, ...]
    path_phases: tuple[tuple[str, float], ...]
    waits: tuple[Wait, ...]
    waits_left_out: int
    decisions: tuple[Decision, ...]
    decisions_left_out: int
    integration: Integration | None
    review: str
    deliveries: tuple[str, ...]
    usage: Usage | None
