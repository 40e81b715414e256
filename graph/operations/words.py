"""A person's words for an agent, as a verb was given them."""

from typing import Final

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.session_write import given_text

# Words stand in every later prompt; what is longer belongs into a file of the worktree.
MAX_WORDS_BYTES: Final = 64 << 10


def given_words(text: str | None) -> str | None:
    """The words; ``-`` reads them from standard input. None for none. Raises: INVALID_USAGE for empty or too long."""
    words = given_text(text)
    if words is None:
        return None
    if not words.strip() or "\0" in words:
        raise GraphError(
            "INVALID_USAGE", "The words for the agent are empty, or hold a NUL.", kept="everything as it is"
        )
    if len(words.encode("utf-8", "replace")) > MAX_WORDS_BYTES:
        raise GraphError(
            "INVALID_USAGE",
            f"The words for the agent have more than {MAX_WORDS_BYTES >> 10} KiB.",
            kept="everything as it is",
            next="put them into a file in the worktree and name the file",
        )
    return words.encode("utf-8", "replace").decode()
