"""Agents whose driver is acp, as settings and as what their hosts recorded: which program, what its launch says, what
its turn came to. `launch` joins it to the other drivers. Nothing is started here.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

from coordinate_agents.sessions import custodian
from coordinate_agents.sessions.adapters import ADAPTERS
from coordinate_agents.sessions.adapters.base import Adapter
from coordinate_agents.sessions.agent import AgentSettings, ResolvedAgent, ResolvedExecutable, TurnReading, TurnRequest
from coordinate_agents.sessions.errors import SessionError
from coordinate_agents.sessions.model import AcpRules, AgentTurn, Driver, Usage
from coordinate_agents.sessions.prompt import check_templates
from coordinate_agents.sessions.questions import Limit, find_closing_limit, find_limit, find_only_limit

# A person decides, where nothing else is configured.
DEFAULT_POLICY: Final = "ask"
# Whoever drives ends a subtask whose question nobody answers; the host answers by itself when nobody drives.
_DRIVER_FIRST_S: Final = 60.0


def driver_of(settings: AgentSettings, adapter: Adapter) -> Driver:
    """The driver of these settings. Raises: UNSUPPORTED_CAPABILITY, INVALID_ADAPTER_CONFIG; needs no program."""
    driver = settings.driver or adapter.driver
    if driver != "acp":
        return driver
    problem = None
    if settings.mode == "interactive":
        problem = "mode interactive is typed into, and driver acp is spoken to: it stays over all turns by itself"
    elif settings.delivery is not None:
        problem = f"delivery {settings.delivery} is for programs with a terminal; driver acp sends the prompt itself"
    elif settings.resume_args is not None:
        problem = "resumeArgs are for programs that are started for each turn; driver acp takes a session up itself"
    if adapter.acp is None:
        raise SessionError(
            "UNSUPPORTED_CAPABILITY",
            f"agent {settings.agent}: adapter {adapter.name} has no program that speaks the Agent Client Protocol.",
            kept="nothing was created or started",
            next="use driver pty, or adapter acp with the command of a program that speaks it",
        )
    if problem is not None:
        raise SessionError(
            "INVALID_ADAPTER_CONFIG",
            f"agent {settings.agent}: {problem}.",
            kept="nothing was created or started",
            next="leave that key out",
        )
    return driver


def command_of(settings: AgentSettings, adapter: Adapter) -> tuple[str | None, str]:
    """The program to look for, and who named it; None when nobody did."""
    command = adapter.acp.command if adapter.acp is not None else None
    if settings.command is not None:
        return settings.command, settings.sources.get("command", "configuration")
    return command, f"adapter {adapter.name}, driver acp"


def resolved(settings: AgentSettings, adapter: Adapter, executable: ResolvedExecutable) -> ResolvedAgent:
    """Raises: INVALID_ADAPTER_CONFIG."""
    assert adapter.acp is not None
    args = settings.args if settings.args is not None else adapter.acp.args
    check_templates(args)
    return ResolvedAgent(
        agent=settings.agent,
        adapter=adapter.name,
        executable=executable,
        args=args,
        resume_args=None,
        delivery="file",
        driver="acp",
        commit_by=adapter.commit,
        can_continue=True,
        env={**adapter.env, **settings.env},
        needs_session=True,
        permissions=settings.permissions or DEFAULT_POLICY,
    )


def rules_of(request: TurnRequest) -> AcpRules:
    """How the host of this launch speaks."""
    timeout_s = request.input_timeout_s
    found = AcpRules(
        load=request.external_session or "", policy=request.agent.permissions, idle_life_s=request.idle_life_s
    )
    if timeout_s is None:
        return found
    return AcpRules(
        found.load, found.policy, permission_timeout_s=permission_timeout_s(timeout_s), idle_life_s=found.idle_life_s
    )


def permission_timeout_s(input_timeout_s: float) -> float:
    """How long the host waits for a person's answer, of whom the driver waits for so long."""
    return input_timeout_s + _DRIVER_FIRST_S


def reading_of(path: Path, adapter: Adapter, turn: str, tail: str, *, has_failed: bool, now: float) -> TurnReading:
    """What the host of this Session folder recorded of the agent's own session and of this turn, of which `tail` is the
    end. Without the name of a turn it is the last one.
    """
    record = custodian.see(path).record
    if record is None or record.conversation is None:
        return TurnReading()
    conversation = record.conversation
    found = (record.turn_named(turn) if turn else None) or record.turn or AgentTurn("", "failed")
    known = TurnReading(conversation.external_session or None, usage=_usage(found, adapter))
    error = found.error or conversation.error
    if "AUTH_REQUIRED" in (conversation.code, found.code):
        return replace(known, code="AUTH_REQUIRED", line=error[:300])
    limit, is_certain = _limit(adapter, error, tail, has_failed=has_failed, now=now)
    if limit is None:
        return known
    return replace(known, code=limit.code, line=limit.line, retry_at=limit.retry_at, is_certain=is_certain)


def _limit(adapter: Adapter, error: str, tail: str, *, has_failed: bool, now: float) -> tuple[Limit | None, bool]:
    """Why its service refused, and whether that is certain. Tools print such words, too: of a turn that failed only its
    error counts and what the program wrote beside the conversation.
    """
    rules = (*adapter.limits, *ADAPTERS["acp"].limits)
    if has_failed:
        beside = "\n".join(line for line in tail.splitlines() if line.startswith("[stderr] "))
        found = find_limit(error, rules, now=now) or find_limit(beside, rules, now=now)
        return found or find_only_limit(tail, rules, now=now), True
    said = find_closing_limit(tail, rules, now=now)
    return (said, True) if said is not None else (find_only_limit(tail, rules, now=now), False)


def _usage(turn: AgentTurn, adapter: Adapter) -> Usage | None:
    """Of the tokens only where they are known to be of this turn; money is."""
    usage = turn.usage
    if usage is None or (adapter.acp is not None and adapter.acp.tells_tokens):
        return usage
    return None if usage.cost_usd is None else Usage(cost_usd=usage.cost_usd)
