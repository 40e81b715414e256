"""Commands of checks: how strings are split, what is refused, and what cannot fail (case EV-12)."""

import pytest

from coordinate_agents.graph import commands, durations


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pytest -q", ("pytest", "-q")),
        ("pytest -k 'a b' \"c d\" e\\ f", ("pytest", "-k", "a b", "c d", "e f")),
        ("make  # not a comment", ("make", "#", "not", "a", "comment")),
        ("curl http://localhost/?a=1&b=2", ("curl", "http://localhost/?a=1&b=2")),
    ],
)
def test_string_is_split_into_words(text: str, words: tuple[str, ...]) -> None:
    assert commands.split(text) == words


@pytest.mark.parametrize("text", ["a && b", "a || b", "a | b", "a; b", "a > f", "a < f", "a $(b)", "a `b`", "a &"])
def test_shell_syntax_in_a_string_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"write \[sh, -c, '.*'\] for a shell, or an argument list"):
        commands.split(text)


@pytest.mark.parametrize(
    "script",
    [
        "false || true",
        "false || :",
        "(pytest || exit 0) && make",
        "false | tail -1",
        "pytest 2>&1 | tee log",
        "false; true",
        "false\ntrue\n",
        "pytest; echo done",
        "set +e; pytest",
        "pytest &",
        "pytest || echo failed",
    ],
)
def test_script_that_hides_an_exit_code_is_warned_about(script: str) -> None:
    for words in (["sh", "-c", script], ["/bin/bash", "-lc", script], ["env", "A=1", "bash", "-e", "-c", script]):
        assert len(commands.warnings(words, was_string=False)) == 1, words


@pytest.mark.parametrize(
    "script",
    [
        "pytest && make",
        "set -o pipefail; pytest | tail -1",
        "test -f x || exit 1",
        "a || b",
        "grep -q 'x|tail' f",
        "pytest > log 2>&1",
        "make; pytest",
        "git commit -m 'a; true'",
    ],
)
def test_script_that_can_fail_is_not_warned_about(script: str) -> None:
    assert commands.warnings(["sh", "-c", script], was_string=False) == ()


def test_argument_list_that_only_looks_like_shell_is_not_warned_about() -> None:
    assert commands.warnings(["grep", "|| true", "f"], was_string=False) == ()
    assert commands.warnings(["python", "-c", "x || true"], was_string=False) == ()


def test_program_that_always_succeeds_is_warned_about() -> None:
    assert commands.warnings(["true"], was_string=True) == ("'true' always succeeds: this check proves nothing",)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90s", 90.0), ("45m", 2700.0), ("2h", 7200.0), ("1h30m", 5400.0), ("90", 90.0), ("0.5", 0.5)),
        *(("1.5h", 5400.0), ("250ms", 0.25), ("1d", 86400.0), ("366d", 31622400.0)),
    ],
)
def test_duration_in_seconds(text: str, seconds: float) -> None:
    assert durations.seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "0s", "-1", "1 h", "5 minutes", "1m1h", "1s1s", "367d", "1e3", "h", "∞", "١s"]
)
def test_text_that_is_no_duration(text: str) -> None:
    assert durations.seconds(text) is None


@pytest.mark.parametrize("text", ["90s", "45m", "1h30m", "1d2h3m4s5ms"])
def test_spelled_duration_reads_back(text: str) -> None:
    seconds = durations.seconds(text)
    assert seconds is not None
    assert durations.seconds(durations.spell(seconds)) == seconds


def test_spelled_duration_is_the_shortest() -> None:
    assert [durations.spell(each) for each in (5400.0, 90.0, 0.25, 86400.0)] == ["1h30m", "1m30s", "250ms", "1d"]
