"""The deadlines of a child, or of one turn of a child that stays."""


class Limits:
    """Seconds awake; None: no such limit."""

    __slots__ = ("close_bound_s", "idle_timeout_s", "stop_on_idle", "timeout_s")

    def __init__(
        self, *, timeout_s: float | None, idle_timeout_s: float | None, stop_on_idle: bool, close_bound_s: float
    ) -> None:
        self.timeout_s = timeout_s
        self.idle_timeout_s = idle_timeout_s
        self.stop_on_idle = stop_on_idle
        self.close_bound_s = close_bound_s

    def of_turn(self, fields: "dict[str, object]") -> "Limits":
        """Those of a turn, or of the time between two; the bound of a close is the Session's."""
        timeout, idle = fields.get("timeout_s"), fields.get("idle_timeout_s")
        return Limits(
            timeout_s=float(timeout) if isinstance(timeout, int | float) else None,
            idle_timeout_s=float(idle) if isinstance(idle, int | float) else None,
            stop_on_idle=fields.get("on_idle") == "stop",
            close_bound_s=self.close_bound_s,
        )
