"""An agent that stays, for tests of Sessions: it prints a prompt and answers every line."""

from pathlib import Path

from world import World

# quit N: end with exit code N; ask: a yes-or-no question; anything else is echoed.
_BODY = r"""#!/bin/sh
printf 'ready> '
while read -r word rest; do
  case "$word" in
    quit) exit "${rest:-0}" ;;
    ask) printf 'Go on? [y/N] '; read -r answer; echo "answer=$answer" ;;
    trust) printf 'Do you trust the files here? '; read -r answer; echo "trusted=$answer" ;;
    pwd) pwd -P ;;
    sequences) printf '\033]0;title\007\033]52;c;eA==\007\033[31mred\033[2J after\n' ;;
    env) env | grep '^COORDINATE_AGENTS_' | sort ;;
    *) echo "got:$word${rest:+ $rest}" ;;
  esac
  printf 'ready> '
done
"""


def terminal_agent(world: World, name: str = "term") -> Path:
    """The program, outside the checkout; configure it under a name of your choice."""
    path = world.place / f"{name}.sh"
    path.write_text(_BODY)
    path.chmod(0o755)
    return path
