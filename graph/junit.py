"""The state of a graph as JUnit XML: a test case for each subtask, and one for each check of it and of the integration.

Pure; works on the data of graph-status. The form is the common one that forges and CI servers read: one `testsuite`
with `properties`, `testcase`, `system-out` and `system-err` in this order, all of its attributes given.
Source: the schema of Apache Ant's JUnit task (JUnit.xsd).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from coordinate_agents.graph.text import clipped

MAX_TAIL_BYTES: Final = 8 << 10
# XML 1.0 has no way to write these. Source: XML 1.0 (5th ed.), production Char.
_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FAILED_CHECKS: Final = ("failed", "timed-out")


def junit(status: Mapping[str, Any], *, timestamp: str) -> str:
    """`timestamp` is when the suite was written: ISO 8601 without a zone, in UTC."""
    graph = status["graph"]
    cases = [case for subtask in status["subtasks"] for case in _of_subtask(graph["id"], subtask)]
    cases += list(_of_integration(graph["id"], status["integration"]))
    suites = Element("testsuites")
    suite = SubElement(suites, "testsuite", {**_totals(cases), "id": "0", "package": graph["id"], "name": graph["id"]})
    suite.set("timestamp", timestamp)
    suite.set("hostname", "localhost")
    properties = SubElement(suite, "properties")
    for name, value in (("state", graph["state"]), ("baseCommit", graph["baseCommit"])):
        SubElement(properties, "property", {"name": name, "value": str(value)})
    suite.extend(cases)
    SubElement(suite, "system-out")
    SubElement(suite, "system-err")
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _of_subtask(graph: str, subtask: Mapping[str, Any]) -> Iterator[Element]:
    case = _case(f"{graph}.{subtask['id']}", subtask["title"] or subtask["id"], subtask["elapsedS"] or 0.0)
    reason = subtask["reason"] or subtask["state"]
    failure = subtask["failure"] or {}
    match subtask["state"]:
        case "SUCCEEDED":
            pass
        case "FAILED":
            _add(
                case, "failure", failure.get("message") or reason, failure.get("code") or "FAILED", failure.get("tail")
            )
        case "STOPPED":
            _add(case, "error", reason, "STOPPED", None)
        case "RUNNING":
            waits = f"{subtask['phase']}: {reason}" if subtask["phase"] else reason
            _add(case, "error", f"it had not ended: {waits}", "RUNNING", None)
        case _:
            _add(case, "skipped", reason, None, None)
    yield case
    for check in (subtask["evidence"] or {}).get("checks", ()):
        yield _of_check(f"{graph}.{subtask['id']}", check)


def _of_integration(graph: str, integration: Mapping[str, Any] | None) -> Iterator[Element]:
    if integration is None:
        return
    name = f"{graph}.integration"
    case = _case(name, "integration", 0.0)
    failure = integration.get("failure") or {}
    state = integration["state"]
    if state in ("failed", "conflict"):
        _add(case, "failure", failure.get("message") or state, failure.get("code") or "FAILED", failure.get("tail"))
    elif state != "integrated":
        _add(case, "skipped", state, None, None)
    yield case
    for check in integration.get("checks") or ():
        yield _of_check(name, check)


def _of_check(owner: str, check: Mapping[str, Any]) -> Element:
    case = _case(f"{owner}.checks", check["name"], (check["durationMs"] or 0) / 1000)
    outcome = check["outcome"]
    how = f"{outcome}, exit code {check['exitCode']}" if check["exitCode"] is not None else outcome
    if outcome in _FAILED_CHECKS:
        _add(case, "failure", how, "CHECK_FAILED", check.get("tail"))
    elif outcome == "error":
        _add(case, "error", how, "CHECK_FAILED", check.get("tail"))
    elif outcome == "not-run":
        _add(case, "skipped", "an earlier check did not pass", None, None)
    return case


def _case(owner: str, name: str, time_s: float) -> Element:
    return Element("testcase", {"classname": _text(owner), "name": _text(name), "time": f"{time_s:.3f}"})


def _add(case: Element, kind: str, message: str, type_: str | None, tail: str | None) -> None:
    told = SubElement(case, kind)
    if kind == "skipped":  # the schema gives it no attributes
        told.text = _text(message)
        return
    told.set("message", _text(message))
    told.set("type", type_ or kind)
    if tail:
        told.text = _text(clipped(tail, MAX_TAIL_BYTES))


def _totals(cases: list[Element]) -> dict[str, str]:
    counts = {kind: sum(case.find(kind) is not None for case in cases) for kind in ("failure", "error", "skipped")}
    return {
        "tests": str(len(cases)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": f"{sum(float(case.get('time', '0')) for case in cases):.3f}",
    }


def _text(text: str) -> str:
    """What XML can hold; anything else shows as its number."""
    return _NO_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
