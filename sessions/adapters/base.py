"""What an adapter is: facts about one kind of agent, as data. Configuration overrides each field on its own."""

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

from coordinate_agents.sessions.model import Delivery, Driver, InputRules, QuestionRule
from coordinate_agents.worktrees.values import value_class

CommitBy = Literal["agent", "runtime", "auto"]
Permissions = Literal["ask", "edits", "allow", "deny"]
# cached is a part of input; total of an agent that gives nothing else.
UsageField = Literal["input", "cached", "output", "total", "cost"]
LimitCode = Literal["RATE_LIMITED", "QUOTA_EXHAUSTED", "AUTH_REQUIRED"]

# Nobody can answer a one-shot agent, and one that may not write cannot do its work.
DEFAULT_PERMISSIONS: Final[Permissions] = "edits"


def phrase(text: str) -> str:
    """A pattern for these words however they were spaced: programs move the cursor where others print a space."""
    return r"\s*".join(_literal(word) for word in text.split())


def _literal(word: str) -> str:
    return "".join(f"\\{letter}" if letter in r"\.^$*+?{}[]|()" else letter for letter in word)


def near_end(pattern: str, characters: int = 700) -> str:
    """The pattern with at most so much text behind it: a question that was answered is followed by other output."""
    return rf"(?:{pattern})[\s\S]{{0,{characters}}}\Z"


# The end of a plain question, of any program.
YES_NO: Final = QuestionRule(
    "yes-no",
    r"(?i:[\[(]\s*y(?:es)?\s*/\s*n(?:o)?\s*[\])]\s*[:?>]?\s*\Z)",
    allow=("y", "Enter"),
    deny=("n", "Enter"),
)


@value_class
class LimitRule:
    """What an agent prints when its service refuses. `pattern` is looked for in the end of a turn that failed.

    `said` is how a line of the program's own begins that says so. It is believed also of a turn that ended without an
    error, or at an idle screen, when it stands at the end. Empty: only a failed turn is looked at.
    """

    code: LimitCode
    pattern: str
    said: str = ""


@value_class
class UsageRule:
    """How an agent prints what a turn took. `line` begins a part in which the fields are looked for, `end` ends it.

    `fields`: before a number stands what one of its patterns finds; several patterns are of numbers that are added.
    Parts that are found more than once are added, or, where `is_running_total`, the last one counts;
    `is_of_conversation`: of all turns of the conversation so far.
    """

    line: str
    fields: Mapping[UsageField, tuple[str, ...]]
    end: str = "\n"
    is_running_total: bool = False
    is_of_conversation: bool = False


@value_class
class Interactive:
    """The agent as a program that stays: its arguments, and how it is typed into.

    `resume` None: a closed conversation cannot be taken up. `idle` are patterns of the screen, one of which shows that
    a turn is over, once nothing more was printed for `idle_s` and no pattern of `busy` is on it: a trigger to look,
    never proof. `prints_usage`: the adapter's rules of usage find it here, too.
    """

    args: tuple[str, ...] = ()
    resume: tuple[str, ...] | None = None
    input: InputRules = field(default_factory=InputRules)
    idle: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    idle_s: float = 5.0
    prints_usage: bool = False


@value_class
class Acp:
    """The program of this kind that speaks the Agent Client Protocol; `command` None: configuration must name it.

    `tells_tokens`: what it tells of them with the end of a turn was seen to be of that turn, all of it. Others tell of
    the last step or of the whole conversation, or nobody knows of what.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    tells_tokens: bool = False


@value_class
class Adapter:
    """One kind of agent.

    `command` None: configuration must name one. The arguments of a one-shot turn are `subcommand`, the flags of the
    permission mode, and `args`, which may contain templates (see `prompt`); those of a later turn of the same
    conversation are the same with `resume` in place of `args`. A mode that `permissions` does not name adds nothing:
    the agent's own settings decide. `env` is added to the environment, below what the configuration sets. `commit` is
    the default for who commits: an agent whose sandbox ends at its worktree cannot write to the repository's git folder
    ("runtime"); `writes_git_dir` says so where it was tried.

    The id of a conversation is either chosen by us (`chooses_session`: an UUID in the place of `{externalSession}`)
    or found in the output (`session_pattern`, one group). `usage` is of one-shot turns, and of
    others where `interactive` says so; the first rule that fits.

    `acp` None: no program of this kind speaks that protocol. There a permission mode is the answer to its requests, and
    adds no flags.
    """

    name: str
    command: str | None = None
    subcommand: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    resume: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    permissions: Mapping[Permissions, tuple[str, ...]] = field(default_factory=dict)
    delivery: Delivery = "argument"
    driver: Driver = "pty"
    commit: CommitBy = "agent"
    writes_git_dir: bool | None = None
    chooses_session: bool = False
    session_pattern: str = ""
    questions: tuple[QuestionRule, ...] = (YES_NO,)
    limits: tuple[LimitRule, ...] = ()
    usage: tuple[UsageRule, ...] = ()
    interactive: Interactive | None = None
    acp: Acp | None = None

    def arguments(self, permissions: str | None) -> tuple[str, ...]:
        """Everything after the command, for a permission mode; None: the default mode."""
        return (*self.subcommand, *self.flags(permissions), *self.args)

    def resume_arguments(self, permissions: str | None) -> tuple[str, ...] | None:
        """As `arguments`, for a further turn of a conversation; None: there is no such thing."""
        if self.resume is None:
            return None
        return (*self.subcommand, *self.flags(permissions), *self.resume)

    def interactive_arguments(self, permissions: str | None) -> tuple[str, ...]:
        """Everything after the command of the program that stays."""
        found = self.interactive or Interactive()
        return (*found.args, *self.flags(permissions))

    def interactive_resume_arguments(self, permissions: str | None) -> tuple[str, ...] | None:
        if self.interactive is None or self.interactive.resume is None:
            return None
        return (*self.interactive.resume, *self.flags(permissions))

    def flags(self, permissions: str | None) -> tuple[str, ...]:
        """The flags of a permission mode; none for a mode without an entry."""
        wanted = permissions or DEFAULT_PERMISSIONS
        return tuple(word for mode, words in self.permissions.items() if mode == wanted for word in words)
