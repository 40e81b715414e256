"""What became of the conversation with an agent: one small class each. Facts; nobody decides here."""

TYPE_CHECKING = False
if TYPE_CHECKING:  # costs a host more than it needs
    from coordinate_agents.sessions.acp.framing import Message
    from coordinate_agents.sessions.acp.permissions import Option


class Stray:
    """Text that is no message."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Opened:
    """The agent's session is there. `reason`: why the wanted one could not be taken up, when it was not."""

    __slots__ = ("external_session", "peer", "reason", "resumed")

    def __init__(self, external_session: str, *, resumed: bool, reason: str, peer: str) -> None:
        self.external_session = external_session
        self.resumed = resumed
        self.reason = reason
        self.peer = peer


class Updated:
    """What the agent says of its work: the `update` of a session/update."""

    __slots__ = ("update",)

    def __init__(self, update: "Message") -> None:
        self.update = update


class Asked:
    """A person is asked for a permission. `key` is ours and names this very request."""

    __slots__ = ("key", "options", "summary", "tool")

    def __init__(self, key: str, summary: str, tool: str, options: "list[Option]") -> None:
        self.key = key
        self.summary = summary
        self.tool = tool
        self.options = options


class Decided:
    """A permission was given or refused by the policy."""

    __slots__ = ("option", "summary")

    def __init__(self, summary: str, option: "Option") -> None:
        self.summary = summary
        self.option = option


class Settled:
    """A permission that was asked for waits no more. `option` is empty when nobody chose one."""

    __slots__ = ("key", "option")

    def __init__(self, key: str, option: str) -> None:
        self.key = key
        self.option = option


class TurnOver:
    """The one end of a turn. `error` empty: the agent said `stop_reason`, which proves nothing.

    `code` is AUTH_REQUIRED or empty; `was_cancelled`: it was asked to stop before it ended, whatever it says. `usage`:
    the fields of a `model.Usage` that it told.
    """

    __slots__ = ("code", "error", "stop_reason", "turn", "usage", "was_cancelled")

    def __init__(
        self,
        turn: str,
        *,
        stop_reason: str = "",
        error: str = "",
        code: str = "",
        was_cancelled: bool = False,
        usage: "dict[str, float] | None" = None,
    ) -> None:
        self.turn = turn
        self.stop_reason = stop_reason
        self.error = error
        self.code = code
        self.was_cancelled = was_cancelled
        self.usage = usage or {}


class Broken:
    """Nothing more can come of this conversation."""

    __slots__ = ("code", "reason")

    def __init__(self, reason: str, code: str = "") -> None:
        self.reason = reason
        self.code = code


Event = Stray | Opened | Updated | Asked | Decided | Settled | TurnOver | Broken
