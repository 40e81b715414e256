"""A secret of the agent's environment, printed in every way that a program may: it is in nothing stored or shown."""

from pathlib import Path

import pytest
from world import World

pytestmark = pytest.mark.story

TOKEN = "q7Lw2-Zr9xV4-kT8mB1"
HEAD, REST = TOKEN[:11], TOKEN[11:]
# Two writes; a colour, a title, a lone CR and a bell between its halves; over 64 KiB; at the end of the output.
AGENT = f"""
head=$(printf %s "$DEPLOY_TOKEN" | cut -c1-11); rest=$(printf %s "$DEPLOY_TOKEN" | cut -c12-)
[ "$head$rest" = "$DEPLOY_TOKEN" ]
printf '%s' "$head"; sleep 0.2; printf '%s\\n' "$rest"
printf '%s\\033[31m%s\\033[0m\\n' "$head" "$rest"
printf '%s\\033]0;title\\007%s\\n' "$head" "$rest"
printf '%s\\r%s\\n' "$head" "$rest"
printf '%s\\007%s\\n' "$head" "$rest"
head -c {65536 - 200} /dev/zero | tr '\\0' x
printf '%0150d%s\\nall of it\\n' 0 "$DEPLOY_TOKEN"
echo "$DEPLOY_TOKEN" >&2; printf '%s' "$head"; sleep 0.2; printf '%s' "$rest"
exit 3
"""


def test_a_secret_printed_in_pieces_is_nowhere_afterwards(world: World) -> None:
    # SY-01
    world.configure({"one": (world.agent(AGENT),)})
    world.environment["DEPLOY_TOKEN"] = TOKEN
    done = world.run("graph-run", world.graph("id: plan\nsubtasks: [{id: a, spec: x}]\n"), "--json")
    assert done.code == 4, str(done)
    shown = [done.out + done.err]
    for words in (
        ("session-read", "plan/a"),
        ("session-read", "plan/a", "--raw", "--json"),
        ("session-inspect", "plan/a", "--screen"),
        ("graph-inspect", "plan", "a", "--part", "failure"),
        ("graph-inspect", "plan", "a", "--part", "screen"),
        ("graph-inspect", "plan", "a", "--json"),
        ("graph-events", "plan", "--json"),
    ):
        each = world.run(*words)
        assert each.code in (0, 4), str(each)
        shown.append(each.out + each.err)
    assert "all of it" in "".join(shown)
    for text in shown:
        assert TOKEN not in text
        assert REST not in text, text[-3000:]
    state = world.root / ".git" / "coordinate-agents"
    stored = [path for path in state.rglob("*") if path.is_file()]
    assert any(path.name == "output.log" for path in stored)
    assert [path.relative_to(state) for path in stored if holds(path)] == []


def holds(path: Path) -> bool:
    data = path.read_bytes()
    return TOKEN.encode() in data or REST.encode() in data
