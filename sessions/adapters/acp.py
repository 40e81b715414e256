"""Any program that speaks the Agent Client Protocol: the configuration names it and its arguments.

What it leaves uncommitted after a turn that ended well is committed by the Runtime: many such agents edit and no more.
"""

from coordinate_agents.sessions.adapters.base import Acp, Adapter

ADAPTER = Adapter(name="acp", driver="acp", commit="auto", questions=(), acp=Acp())
