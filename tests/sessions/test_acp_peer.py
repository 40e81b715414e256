"""Our side of the Agent Client Protocol without input and output: what is written for what was read."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinate_agents.sessions.acp import events
from coordinate_agents.sessions.acp.framing import Lines
from coordinate_agents.sessions.acp.peer import Peer
from coordinate_agents.sessions.acp.words import Words

HELLO: dict[str, Any] = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}


def line(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n"


def written(peer: Peer) -> list[Any]:
    """What is to be written: (method or id, what matters of it)."""
    found = [json.loads(each) for each in peer.take_out().splitlines()]
    return [each.get("method") or (each["id"], each.get("result", each.get("error"))) for each in found]


def happened(peer: Peer) -> list[Any]:
    """Class and values of each event; what a turn took only where it was told."""
    return [
        (
            type(each).__name__,
            *(getattr(each, name) for name in sorted(each.__slots__) if name != "usage" or each.usage),
        )
        for each in peer.take_events()
    ]


def opened(policy: str = "ask") -> Peer:
    peer = Peer(cwd="/w", policy=policy)
    peer.begin()
    peer.receive(line(id=0, result=HELLO) + line(id=1, result={"sessionId": "s"}))
    peer.take_out()
    peer.take_events()
    return peer


def asks(id: Any, session: str = "s") -> bytes:
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    params = {
        "sessionId": session,
        "toolCall": {"title": "do", "rawInput": {"command": ["a", "b"]}},
        "options": options,
    }
    return line(id=id, method="session/request_permission", params=params)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from([b'{"a": 1}\n', b"text\n", b"\n", b"  {broken\n", b' {"b": "x{y"}\n', b"tail \xff", b"[1]\n"])
    ),
    st.lists(st.integers(1, 9), min_size=1),
)
def test_lines_are_the_same_however_they_are_cut(parts: list[bytes], cuts: list[int]) -> None:
    data, at, turn = b"".join(parts), 0, 0
    whole, cut = Lines(), Lines()
    pieces = []
    while at < len(data):
        size = cuts[turn % len(cuts)]
        pieces += cut.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    expected = [*whole.feed(data), whole.end()]
    pieces.append(cut.end())

    def told(found: list[Any]) -> tuple[bytes, list[Any]]:
        return b"".join(each for each in found if isinstance(each, bytes)), [e for e in found if isinstance(e, dict)]

    assert told(pieces) == told(expected)


def test_a_line_that_is_too_long_is_named_and_not_kept() -> None:
    lines = Lines(1 << 20)
    assert lines.feed(b'{"a": 1}\n{"b": "' + b"x" * (1 << 20)) == [{"a": 1}]
    assert lines.failure == "a line of more than 1 MiB"
    assert (lines.feed(b"more\n"), lines.end()) == ([], b"")


@pytest.mark.parametrize(
    ("capabilities", "answers", "methods", "opened"),
    [
        ({"loadSession": True}, [{"result": None}], ["session/load"], ("old", True, "")),
        (
            {"loadSession": True, "sessionCapabilities": {"resume": {}}},
            [{"result": {}}],
            ["session/resume"],
            ("old", True, ""),
        ),
        (
            {"loadSession": True, "sessionCapabilities": {"resume": {}}},
            [{"error": {"code": -32601, "message": "what?"}}, {"result": {}}],
            ["session/resume", "session/load"],
            ("old", True, ""),
        ),
        (
            {"loadSession": True},
            [{"error": {"message": "gone"}}, {"result": {"sessionId": "new"}}],
            ["session/load", "session/new"],
            ("new", False, "the agent could not take it up: gone"),
        ),
        (
            {},
            [{"result": {"sessionId": "new"}}],
            ["session/new"],
            ("new", False, "the agent cannot take up an earlier conversation"),
        ),
    ],
)
def test_an_earlier_session_is_taken_up_the_best_way_there_is(
    capabilities: Any, answers: list[Any], methods: list[str], opened: Any
) -> None:
    peer = Peer(cwd="/w", load="old")
    peer.begin()
    peer.take_out()
    peer.receive(line(id=0, result={"protocolVersion": 1, "agentCapabilities": capabilities}))
    sent = []
    for number, answer in enumerate(answers, 1):
        sent += written(peer)
        history = {"sessionId": "old", "update": {"sessionUpdate": "agent_message_chunk"}}
        peer.receive(line(method="session/update", params=history) if "load" in sent[-1] else b"")
        peer.receive(line(id=number, **answer))
    assert sent == methods
    session, resumed, reason = opened
    assert happened(peer) == [("Opened", session, "", reason, resumed)]


def test_a_prompt_waits_for_the_session_and_one_that_is_cancelled_before_is_never_sent() -> None:
    peer = Peer(cwd="/w")
    peer.begin()
    assert (peer.prompt("t1", "one"), peer.prompt("t1", "one"), peer.prompt("t2", "two")) == ("", "", "turn t1 runs")
    assert peer.cancel("t2") == "turn t2 does not run; turn t1 does"
    assert peer.cancel() == ""
    assert peer.prompt("t3", "three") == ""
    peer.receive(line(id=0, result=HELLO) + line(id=1, result={"sessionId": "s"}))
    assert written(peer) == ["initialize", "session/new", "session/prompt"]
    assert [each[0] for each in happened(peer)] == ["TurnOver", "Opened"]


def test_every_permission_is_answered_once_and_after_a_cancel_none_is_shown() -> None:
    peer = opened()
    peer.receive(asks(1))
    peer.prompt("t1", "one")
    peer.receive(asks(7) + asks("7") + asks(8, "another"))
    assert written(peer) == [
        (1, {"outcome": {"outcome": "cancelled"}}),
        "session/prompt",
        (8, {"outcome": {"outcome": "cancelled"}}),
    ]
    asked = happened(peer)
    assert [(each[0], each[1], each[3]) for each in asked] == [("Asked", "p1", "do: a b"), ("Asked", "p2", "do: a b")]
    assert peer.answer("p1", "yes") == ""
    assert peer.answer("p1", None) == "permission p1 is not asked for (any more)"
    assert (peer.cancel(), peer.cancel("t1")) == ("", "it was asked to stop already")
    peer.receive(asks(9))
    assert written(peer) == [
        (7, {"outcome": {"outcome": "selected", "optionId": "yes"}}),
        "session/cancel",
        ("7", {"outcome": {"outcome": "cancelled"}}),
        (9, {"outcome": {"outcome": "cancelled"}}),
    ]
    peer.receive(line(id=2, result={"stopReason": "end_turn"}) * 2 + line(id=2, error={"message": "late"}))
    assert happened(peer) == [
        ("Settled", "p1", "yes"),
        ("Settled", "p2", ""),
        ("TurnOver", "", "", "end_turn", "t1", True),
    ]


@pytest.mark.parametrize(
    ("policy", "chosen"),
    [
        ("allow", ["a1", "always", "asked"]),
        ("deny", ["r1", "cancelled", "cancelled"]),
        ("edits", ["a1", "asked", "asked"]),
        ("ask", ["asked", "asked", "asked"]),
    ],
)
def test_policy_answers_what_it_may_and_always_only_where_there_is_nothing_else(policy: str, chosen: list[str]) -> None:
    peer = opened(policy)
    peer.prompt("t1", "one")
    peer.take_out()
    once = [("always", "allow_always"), ("a1", "allow_once"), ("r1", "reject_once")]
    for id, (kind, options) in enumerate([("edit", once), ("edit", once[:1]), ("execute", [("odd", "other")])]):
        offered = [{"optionId": name, "name": name, "kind": each} for name, each in options]
        params = {"sessionId": "s", "toolCall": {"kind": kind}, "options": offered}
        peer.receive(line(id=id, method="session/request_permission", params=params))
    answers = {id: found["outcome"].get("optionId", "cancelled") for id, found in written(peer)}
    assert [answers.get(id, "asked") for id in range(3)] == chosen


@pytest.mark.parametrize(
    ("answer", "reason", "code"),
    [
        ({"result": {"protocolVersion": 9}}, "it speaks version 9 of the protocol; version 1 is known here", ""),
        ({"error": {"code": -32603, "message": "broken"}}, "it does not begin: broken", ""),
        (
            {"error": {"code": -32000, "message": "who?", "data": "log in"}},
            "it does not begin: who? (log in)",
            "AUTH_REQUIRED",
        ),
    ],
)
def test_an_agent_that_does_not_begin_ends_the_turn_that_waits(answer: Any, reason: str, code: str) -> None:
    peer = Peer(cwd="/w")
    peer.begin()
    peer.prompt("t1", "one")
    peer.receive(line(id=0, **answer))
    assert happened(peer) == [("Broken", code, reason), ("TurnOver", code, reason, "", "t1", False)]


def test_an_end_of_the_turn_answers_what_is_pending_and_nothing_comes_after_a_break() -> None:
    peer = opened()
    peer.prompt("t1", "one")
    peer.receive(asks(1) + line(id=2, result={"stopReason": 7}))
    assert written(peer) == ["session/prompt", (1, {"outcome": {"outcome": "cancelled"}})]
    peer.prompt("t2", "two")
    peer.receive(asks(2))
    peer.end()
    peer.give_up("later")
    peer.receive(asks(3) + line(id=3, result={"stopReason": "end_turn"}))
    assert written(peer) == ["session/prompt", (2, {"outcome": {"outcome": "cancelled"}})]
    assert [each[0] for each in happened(peer)] == [
        "Asked",
        "Settled",
        "TurnOver",
        "Asked",
        "Settled",
        "Broken",
        "TurnOver",
    ]
    assert peer.prompt("t3", "three") == ""
    assert happened(peer) == [("TurnOver", "", "the agent closed its stdout", "", "t3", False)]


def test_what_is_not_offered_is_refused_and_nonsense_changes_nothing() -> None:
    peer = opened()
    nonsense = [
        line(id=4, method="fs/read_text_file", params={"path": "/etc/passwd"}),
        line(id=True, result={}),
        line(id="0", result={}),
        line(id=99, result={}),
        line(method="session/update", params=[]),
        line(method="session/update", params={"sessionId": "other", "update": {}}),
        line(id=5, method="session/request_permission", params={"options": 3}),
    ]
    peer.receive(b"".join(nonsense))
    assert written(peer) == [
        (4, {"code": -32601, "message": "fs/read_text_file is not offered here"}),
        (5, {"outcome": {"outcome": "cancelled"}}),
    ]
    assert [type(each) for each in peer.take_events()] == []
    peer.receive(b'{"level": "info"}\n')
    assert isinstance(peer.take_events()[0], events.Stray)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(max_size=4) | st.sampled_from(["s", "yes", "allow_once"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
_METHODS = ["session/update", "session/request_permission", "session/cancel", "fs/read_text_file", "initialize"]
_KEYS = ["sessionId", "update", "toolCall", "options", "sessionUpdate", "content", "protocolVersion", "agentInfo"]
_MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0"),
        "id": _VALUES,
        "method": st.sampled_from(_METHODS) | _VALUES,
        "params": st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=4) | _VALUES,
        "result": st.dictionaries(st.sampled_from([*_KEYS, "stopReason"]), _VALUES, max_size=3) | _VALUES,
        "error": st.dictionaries(st.sampled_from(["code", "message", "data"]), _VALUES, max_size=3) | _VALUES,
    },
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_MESSAGES, max_size=6), st.booleans())
def test_whatever_an_agent_sends_one_turn_has_one_end(messages: list[Any], is_open: bool) -> None:
    peer, words = opened() if is_open else Peer(cwd="/w", load="old"), Words()
    if not is_open:
        peer.begin()
    peer.prompt("t1", "one")
    for message in messages:
        peer.receive(json.dumps(message).encode() + b"\n")
    peer.end()
    found = peer.take_events()
    assert [each.turn for each in found if isinstance(each, events.TurnOver)] == ["t1"]
    asked = [each.key for each in found if isinstance(each, events.Asked)]
    assert asked == [each.key for each in found if isinstance(each, events.Settled)]
    for each in found:
        if isinstance(each, events.Updated):
            words.of(each.update)
    assert not peer.active_turn


def test_a_message_that_is_nested_too_deeply_harms_nobody() -> None:
    peer = opened()
    peer.prompt("t1", "one")
    for depth in (500, 900, 5_000, 100_000):
        nested = b"[" * depth + b"]" * depth
        peer.receive(b'{"a": ' + nested + b"}\n")
        peer.receive(b'{"id": 2, "error": {"message": "no", "data": ' + nested + b"}}\n")
    assert [each.error[:2] for each in peer.take_events() if isinstance(each, events.TurnOver)] == ["no"]


def test_words_are_text_whatever_an_agent_puts_into_them() -> None:
    words = Words()
    updates = [
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a\x1b[31m\ud800"}},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "…"}},
        {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "our own"}},
        {"sessionUpdate": "tool_call", "toolCallId": 3, "title": "one\ntwo", "content": "nothing"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "3", "status": "pending"},
        {"sessionUpdate": "plan", "entries": [{"content": "x\ny", "status": "completed"}, 5]},
        {"sessionUpdate": "plan"},
        {"sessionUpdate": ["?"]},
        {},
    ]
    said = b"".join(words.of(each) for each in updates)
    assert said.decode() == "a?[image]\r\n[tool] one: pending\r\n[plan]\r\n  [x] x y\r\n"


# As the agents' own programs send them: claude-agent-acp 0.49, gemini 0.61, opencode 1.18, and what is no number.
@pytest.mark.parametrize(
    ("result", "usage"),
    [
        (
            {"usage": {"inputTokens": 20, "outputTokens": 10, "cachedReadTokens": 300, "cachedWriteTokens": 4}},
            {"input_tokens": 324, "cached_tokens": 300, "output_tokens": 10},
        ),
        (
            {"usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}},
            {"input_tokens": 10, "output_tokens": 5},
        ),
        ({"usage": {"outputTokens": 5, "thoughtTokens": 3}}, {"output_tokens": 8}),
        (
            {"_meta": {"quota": {"token_count": {"input_tokens": 20, "output_tokens": 10}}}},
            {"input_tokens": 20, "output_tokens": 10},
        ),
        ({"usage": {"inputTokens": True, "outputTokens": -1}, "_meta": 7}, {}),
        ({"usage": {"inputTokens": float("nan"), "outputTokens": 10**30}}, {}),
        ({"usage": "much", "_meta": {"quota": []}}, {}),
    ],
)
def test_tokens_of_a_turn_are_what_the_agent_tells_with_its_end(result: Any, usage: dict[str, int]) -> None:
    peer = opened()
    peer.prompt("t1", "one")
    peer.receive(line(id=2, result={"stopReason": "end_turn", **result}))
    (over,) = peer.take_events()
    assert isinstance(over, events.TurnOver)
    assert over.usage == usage


def money(amount: float, currency: str = "USD") -> bytes:
    update = {"sessionUpdate": "usage_update", "used": 9, "size": 99, "cost": {"amount": amount, "currency": currency}}
    return line(method="session/update", params={"sessionId": "s", "update": update})


def test_money_of_a_turn_is_what_the_session_s_sum_grew_by() -> None:
    peer = opened()

    def turn(name: str, id: int, *told: bytes) -> Any:
        peer.prompt(name, name)
        peer.receive(b"".join(told) + line(id=id, result={"stopReason": "end_turn"}))
        return next(each.usage for each in peer.take_events() if isinstance(each, events.TurnOver))

    assert turn("t1", 2, money(0.25), money(0.5)) == {"cost_usd": 0.5}
    assert turn("t2", 3) == {}
    assert turn("t3", 4, money(0.75), money(9.0, "EUR")) == {"cost_usd": 0.25}
    peer.receive(money(1.0))  # between two turns: the next one's, so that no money is lost
    assert turn("t4", 5, money(2.0)) == {"cost_usd": 1.25}
    assert turn("t5", 6, money(0.1)) == {}  # it counts anew


@pytest.mark.parametrize(("told", "usage"), [(b"", {}), (money(1.0), {"cost_usd": 0.5})])
def test_money_of_a_session_that_was_taken_up_counts_from_what_it_told_of_before(
    told: bytes, usage: dict[str, float]
) -> None:
    peer = Peer(cwd="/w", load="s")
    peer.begin()
    peer.prompt("t1", "one")
    peer.receive(line(id=0, result=HELLO) + told + line(id=1, result={}) + money(1.5))
    peer.receive(line(id=2, result={"stopReason": "end_turn"}))
    (used,) = (each.usage for each in peer.take_events() if isinstance(each, events.TurnOver))
    assert used == usage
