"""What agents say that they used stands in status, inspect and the report; a running total counts once."""

import json

import pytest
from world import World

pytestmark = pytest.mark.story

# As codex prints it: the id of the conversation first, the total of the conversation last.
CODEX = """
case " $* " in *" resume "*) total=1,500;; *) total=1,200;; esac
echo "session id: 0199a213-81c0-7800-8aa1-bbab2a035a53"
cat > /dev/null
echo "$S $total" >> f
printf 'tokens used\\n%s\\nAll done.\\n' "$total"
"""


def test_tokens_of_a_conversation_are_told_once_over_its_turns(world: World) -> None:
    agent = world.agent(CODEX)
    world.configure_text(f"version: 1\nagents:\n  codex: {{adapter: codex, command: {json.dumps(str(agent))}}}\n")
    # Passes once a second turn wrote its line.
    plan = world.graph('id: plan\nchecks: [[sh, -c, "grep -q 1,500 f"]]\nsubtasks: [{id: a, spec: x, agent: codex}]\n')
    done = world.run("graph-run", plan, "--json")
    assert done.code == 0, str(done)
    assert done.data["subtasks"][0]["usage"] == {
        "turns": 2,
        "inputTokens": None,
        "cachedTokens": None,
        "outputTokens": None,
        "totalTokens": 1500,
        "costUsd": None,
    }
    assert "1,500 in all (tokens), in 2 turns, as its agent says" in world.run("graph-inspect", "plan", "a").out
    assert "Agents said that they used 1,500 tokens." in world.run("graph-report", "plan", "--format", "markdown").out
