"""graph-plan draws the plan: the longest chain is marked, and pairs that never run together are joined."""

import pytest
from world import World

pytestmark = pytest.mark.story

PLAN = """id: plan
subtasks:
  - {id: a, title: 'Say "a" <b>', writes: src}
  - {id: b, spec: x, dependsOn: a}
  - {id: c, spec: x, writes: src/c}
"""


def test_plan_is_drawn_as_mermaid_and_as_dot_with_the_longest_chain_marked(world: World) -> None:
    plan = world.graph(PLAN)
    assert world.run("graph-plan", plan, "--format", "mermaid").out.splitlines() == [
        "flowchart LR",
        '  n0["a<br/>Say #34;a#34; #60;b#62;<br/>start"]',
        '  n1["b<br/>x<br/>wait"]',
        '  n2["c<br/>x<br/>wait"]',
        "  n0 ==> n1",
        "  n0 -.- n2",
        "  classDef critical stroke-width:3px",
        "  class n0,n1 critical",
    ]
    assert world.run("graph-plan", plan, "--format", "dot").out.splitlines() == [
        'digraph "plan" {',
        "  rankdir=LR; node [shape=box];",
        '  "a" [label="a\\nSay \\"a\\" <b>\\nstart", penwidth=3];',
        '  "b" [label="b\\nx\\nwait", penwidth=3];',
        '  "c" [label="c\\nx\\nwait"];',
        '  "a" -> "b" [penwidth=3];',
        '  "a" -> "c" [dir=none, style=dotted, constraint=false];',
        "}",
    ]
