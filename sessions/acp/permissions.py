"""What an agent may do without a person being asked, by the policy of its configuration.

Never an answer that outlives the question: "always" options change the agent's own settings, so they are only a
person's to choose, or all there is under the policy `allow`.
"""

# ask: a person decides everything; edits: what reads or changes files goes, the rest is asked; allow and deny: nothing
# is asked.
POLICIES = ("ask", "edits", "allow", "deny")
# Kinds of tool calls that change nothing but files. Source: schema, ToolKind.
_EDITS = frozenset({"read", "edit", "search", "think"})


class Option:
    """`id` is the agent's own, and means something to it alone; `kind` is allow_once, allow_always, reject_once, …"""

    __slots__ = ("id", "kind", "name")

    def __init__(self, id: str, name: str, kind: str) -> None:
        self.id = id
        self.name = name
        self.kind = kind


class Pending:
    """A permission request that waits: the agent's id for it, as it came."""

    __slots__ = ("id", "options")

    def __init__(self, id: object, options: list[Option]) -> None:
        self.id = id
        self.options = options


def decide(policy: str, tool_kind: str, options: "list[Option]") -> "Option | None":
    """The option to choose without asking; None: a person is asked."""
    if policy == "deny":
        return first(options, "reject_once", "reject_always")
    if policy == "allow":
        return first(options, "allow_once", "allow_always")
    if policy == "edits" and tool_kind in _EDITS:
        return first(options, "allow_once")
    return None


def first(options: "list[Option]", *kinds: str) -> "Option | None":
    """The first option of the first kind that there is."""
    for kind in kinds:
        for option in options:
            if option.kind == kind:
                return option
    return None
