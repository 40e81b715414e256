"""JUnit XML in the common form: a case per subtask and check, counted, whatever foreign text holds."""

import re
from typing import Any
from xml.etree.ElementTree import Element, fromstring

from coordinate_agents.graph.junit import junit

_SUITE = {"id", "package", "name", "timestamp", "hostname", "tests", "failures", "errors", "skipped", "time"}


def subtask(name: str, state: str, **changes: Any) -> dict[str, Any]:
    plain = {
        "id": name,
        "title": f"Do {name}",
        "state": state,
        "phase": None,
        "reason": None,
        "elapsedS": 1.5,
        "evidence": None,
        "failure": None,
    }
    return {**plain, **changes}


def check(name: str, outcome: str, code: int | None = None) -> dict[str, Any]:
    return {"name": name, "outcome": outcome, "exitCode": code, "durationMs": 1250, "logPath": None}


def status(*subtasks: dict[str, Any], integration: Any = None) -> dict[str, Any]:
    return {
        "graph": {"id": "g", "state": "FAILED", "baseCommit": "0" * 40},
        "subtasks": list(subtasks),
        "integration": integration,
    }


def valid(text: str) -> Element:
    """The suite, after what the schema demands was looked at: elements, their order, attributes and their types."""
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>')
    suites = fromstring(text)
    assert (suites.tag, suites.attrib, len(suites)) == ("testsuites", {}, 1)
    suite = suites[0]
    assert suite.tag == "testsuite"
    assert set(suite.attrib) == _SUITE
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
    tags = [child.tag for child in suite]
    assert tags == ["properties", *["testcase"] * (len(tags) - 3), "system-out", "system-err"]
    for case in suite.iter("testcase"):
        assert set(case.attrib) == {"name", "classname", "time"}
        assert re.fullmatch(r"\d+\.\d{3}", case.attrib["time"])
        assert len(case) <= 1
        for outcome in case:
            assert outcome.tag in ("failure", "error", "skipped")
            assert set(outcome.attrib) == (set() if outcome.tag == "skipped" else {"message", "type"})
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.attrib[name]) == len(list(suite.iter(tag))), name
    return suite


def outcomes(suite: Element) -> dict[str, tuple[str, str] | None]:
    """Class and name → what is in the case: (tag, type or text)."""
    return {
        f"{case.attrib['classname']} {case.attrib['name']}": next(
            ((child.tag, child.attrib.get("type") or child.text or "") for child in case), None
        )
        for case in suite.iter("testcase")
    }


def test_every_subtask_and_check_is_a_case_with_its_outcome() -> None:
    passed = {"checks": [check("unit", "passed", 0)]}
    failed = {"checks": [check("unit", "failed", 1), check("lint", "not-run"), check("slow", "timed-out")]}
    told = status(
        subtask("a", "SUCCEEDED", evidence=passed),
        subtask("b", "FAILED", evidence=failed, failure={"code": "CHECK_FAILED", "message": "no", "tail": "E 1"}),
        subtask("c", "BLOCKED", reason="blocked by b"),
        subtask("d", "STOPPED", reason="interrupted"),
        subtask("e", "RUNNING", phase="awaiting-input", reason="Go on?"),
        integration={"state": "failed", "checks": [check("whole", "error")], "failure": None},
    )
    suite = valid(junit(told, timestamp="2026-01-02T03:04:05"))
    assert outcomes(suite) == {
        "g.a Do a": None,
        "g.a.checks unit": None,
        "g.b Do b": ("failure", "CHECK_FAILED"),
        "g.b.checks unit": ("failure", "CHECK_FAILED"),
        "g.b.checks lint": ("skipped", "an earlier check did not pass"),
        "g.b.checks slow": ("failure", "CHECK_FAILED"),
        "g.c Do c": ("skipped", "blocked by b"),
        "g.d Do d": ("error", "STOPPED"),
        "g.e Do e": ("error", "RUNNING"),
        "g.integration integration": ("failure", "FAILED"),
        "g.integration.checks whole": ("error", "CHECK_FAILED"),
    }
    failure = next(suite.iter("failure"))
    assert (failure.attrib["message"], failure.text) == ("no", "E 1")


def test_an_untouched_graph_is_all_skipped() -> None:
    suite = valid(junit(status(subtask("a", "READY", elapsedS=None)), timestamp="2026-01-02T03:04:05"))
    assert outcomes(suite) == {"g.a Do a": ("skipped", "READY")}
    assert suite.attrib["time"] == "0.000"


def test_text_that_xml_cannot_hold_is_shown_as_numbers() -> None:
    odd = "a\x00b\x1b[31m\ud800\ufffe <&\"'>"
    told = status(subtask("a", "FAILED", title=odd, failure={"code": "X", "message": odd, "tail": odd}))
    suite = valid(junit(told, timestamp="2026-01-02T03:04:05").encode().decode())
    shown = "a\\u0000b\\u001b[31m\\ud800\\ufffe <&\"'>"
    [case] = suite.iter("testcase")
    assert (case.attrib["name"], case[0].attrib["message"], case[0].text) == (shown, shown, shown)
