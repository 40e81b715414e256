"""Numbers of a report as people read them: times, counts of tokens, money. Pure; used by every form of it."""

from coordinate_agents.graph.report_model import Check, Usage


def length(seconds: float) -> str:
    """``0.4s``, ``42s``, ``3m 05s``, ``1h 02m``, ``2d 3h``."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"


def tick(seconds: float) -> str:
    """A point of the time axis: ``0``, ``30s``, ``5m``, ``1h30m``."""
    whole = int(seconds)
    if whole == 0:
        return "0"
    days, hours, minutes, rest = whole // 86400, whole % 86400 // 3600, whole % 3600 // 60, whole % 60
    parts = ((days, "d"), (hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def tokens(usage: Usage) -> str:
    """``12,300 in (9,000 cached), 840 out, $0.12``; what was not said is left out."""
    parts = []
    if usage.input_tokens is not None:
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        parts.append(f"{usage.input_tokens:,} in{cached}")
    if usage.output_tokens is not None:
        parts.append(f"{usage.output_tokens:,} out")
    if usage.total_tokens is not None:
        parts.append(f"{usage.total_tokens:,} tokens")
    if usage.cost_usd is not None:
        parts.append(f"${usage.cost_usd:,.2f}" if usage.cost_usd >= 0.01 else f"${usage.cost_usd:.4f}")
    return ", ".join(parts)


def outcome(check: Check) -> str:
    """``passed in 3.2s``, ``failed, exit code 1, in 0.1s``."""
    how = check.outcome
    if check.outcome not in ("passed", "not-run") and check.exit_code is not None:
        how += f", exit code {check.exit_code},"
    return how if check.outcome == "not-run" else f"{how} in {length(check.duration_s)}"
