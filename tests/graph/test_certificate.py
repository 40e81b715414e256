"""Certificates: one text for one statement, read back only when canonical, and chained by digest."""

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinate_agents.graph.certificate import (
    Certificate,
    CertificateError,
    ChangedPaths,
    Prerequisite,
    Statement,
    Waiver,
    certificate,
    changed_judges,
    changed_of,
    links,
    parse,
    statement_of,
)
from coordinate_agents.graph.evidence import CheckOutcome, Fact, Verdict
from coordinate_agents.graph.model import Check, CommitId, GraphId, SubtaskId

BASE, HEAD, TREE = CommitId("b" * 40), CommitId("c" * 40), "e" * 40
EMPTY_DIGEST = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

MADE = Statement(
    graph=GraphId("checkout"),
    subtask=SubtaskId("api"),
    attempt=2,
    base=BASE,
    head=HEAD,
    tree=TREE,
    expect="commit",
    changed=ChangedPaths(0, EMPTY_DIGEST, ()),
    changed_judges=(),
    checks=(),
    facts=(Fact(7, "checks", "noted", "no checks are configured"),),
    waivers=(Waiver("fact:scope", "user ann", "agreed with ü"),),
    prerequisites=(),
    git_version="2.39.5",
    previous_event="f" * 64,
)
PREFIX = "not a certificate of version 1: "
TEXT = (
    '{"attempt":2,"base":"' + "b" * 40 + '","changed":{"count":0,"digest":"' + EMPTY_DIGEST + '","first":[]},'
    '"changedJudges":[],"checks":[],"expect":"commit",'
    '"facts":[{"code":null,"isWaivable":false,"message":"no checks are configured","name":"checks","number":7,'
    '"outcome":"noted"}],'
    '"gitVersion":"2.39.5","graph":"checkout","head":"' + "c" * 40 + '","prerequisites":[],'
    '"previousEvent":"' + "f" * 64 + '","subtask":"api","tree":"' + "e" * 40 + '","version":1,'
    '"waivers":[{"reason":"agreed with \\u00fc","what":"fact:scope","who":"user ann"}]}'
)


def test_statement_has_one_text_and_its_digest() -> None:
    assert certificate(MADE) == Certificate(TEXT, hashlib.sha256(TEXT.encode()).hexdigest())


def test_text_reads_back_as_the_same_statement() -> None:
    assert parse(TEXT) == MADE


@given(st.text(alphabet=st.characters(codec=None)), st.integers(), st.booleans())
def test_any_text_and_number_survive_the_way_there_and_back(text: str, number: int, has_check: bool) -> None:
    outcome = CheckOutcome(text, (text,), "failed", exit_code=number, tail="x", commit=text, tree=None)
    made = replace(
        statement_of(
            VERDICT,
            graph=GraphId("g"),
            subtask=SubtaskId("s"),
            attempt=1,
            base=BASE,
            tree=TREE,
            expect="either",
            changed=[text, "a"],
            checks=[],
            outcomes=[outcome] * has_check,
            git_version=text,
            previous_event="",
        ),
        attempt=number,
    )
    assert parse(certificate(made).text) == made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", PREFIX + "Expecting value: line 1 column 1 (char 0)"),
        ("[]", PREFIX + "[] where the fields of Statement are expected"),
        (TEXT + " ", PREFIX + "not the canonical text of what it says"),
        (TEXT.replace('"attempt":2', '"attempt": 2'), PREFIX + "not the canonical text of what it says"),
        (TEXT.replace('"attempt":2', '"attempt":2.0'), PREFIX + "2.0 where int is expected"),
        (TEXT.replace('"attempt":2', '"attempt":true'), PREFIX + "True where int is expected"),
        (TEXT.replace('"attempt":2', '"attempt":"2"'), PREFIX + "'2' where int is expected"),
        (TEXT.replace('"version":1', '"version":2'), "a certificate of version 2; this program knows 1"),
        (TEXT.replace('"noted"', '"fine"'), PREFIX + "'fine' where Literal is expected"),
        ("[" * 100_000, PREFIX),
        ("x" * ((4 << 20) + 1), "a certificate of 4194305 bytes is longer than 4194304"),
    ],
)  # fmt: skip
def test_text_that_is_no_canonical_certificate_is_refused(text: str, message: str) -> None:
    with pytest.raises(CertificateError) as refusal:
        parse(text)
    assert str(refusal.value).startswith(message)


def test_missing_and_unknown_fields_are_refused() -> None:
    raw = json.loads(TEXT)
    for changed in ({**raw, "extra": 1}, {name: raw[name] for name in raw if name != "tree"}):
        with pytest.raises(CertificateError, match="where the fields of Statement are expected"):
            parse(json.dumps(changed, sort_keys=True, separators=(",", ":")))


def test_statement_with_a_float_has_no_certificate() -> None:
    with pytest.raises(CertificateError, match=r"^1\.5 has no canonical text$"):
        certificate(replace(MADE, attempt=1.5))  # type: ignore[arg-type]


# --- what goes in ----------------------------------------------------------------------------------------------------

VERDICT = Verdict(True, HEAD, (Fact(7, "checks", "ok", "1 check passed: tests"),))


def test_accepted_verdict_becomes_a_statement_with_all_that_was_seen() -> None:
    outcome = CheckOutcome(
        "tests", ("pytest", "tests"), "passed", exit_code=0, duration_ms=12, tail="…", commit=HEAD, tree=TREE
    )
    made = statement_of(
        VERDICT,
        graph=GraphId("g"),
        subtask=SubtaskId("api"),
        attempt=1,
        base=BASE,
        tree=TREE,
        expect="commit",
        changed=["src/a", "tests/t.py", "src/a"],
        checks=[Check("tests", ("pytest", "tests"))],
        outcomes=[outcome],
        prerequisites=[
            Prerequisite(SubtaskId("ui"), HEAD, "2" * 64),
            Prerequisite(SubtaskId("db"), BASE, "1" * 64),
        ],
        git_version="2.39.5",
        previous_event="0" * 64,
    )
    digest = hashlib.sha256(b"src/a\0tests/t.py\0").hexdigest()
    assert (made.head, made.changed) == (HEAD, ChangedPaths(2, digest, ("src/a", "tests/t.py")))
    assert made.changed_judges == ("tests/t.py",)
    assert [each.subtask for each in made.prerequisites] == ["db", "ui"]
    (record,) = made.checks
    assert (record.name, record.run, record.outcome, record.exit_code, record.commit, record.tree) == (
        "tests", ("pytest", "tests"), "passed", 0, HEAD, TREE,
    )  # fmt: skip


def test_refused_verdict_has_no_certificate() -> None:
    with pytest.raises(CertificateError, match=r"^a verdict that was not accepted has no certificate$"):
        statement_of(
            Verdict(False, HEAD, ()),
            graph=GraphId("g"),
            subtask=SubtaskId("api"),
            attempt=1,
            base=BASE,
            tree=TREE,
            expect="commit",
            changed=[],
            checks=[],
            outcomes=[],
            git_version="",
            previous_event="",
        )


def test_changed_paths_are_kept_up_to_two_hundred_and_digested_whole() -> None:
    names = [f"f{number:03d}" for number in range(300)]
    made = changed_of(reversed(names))
    assert (made.count, made.first) == (300, tuple(names[:200]))
    assert made.digest != changed_of(names[:299]).digest
    assert changed_of(["a\nb"]).digest != changed_of(["a", "b"]).digest


@pytest.mark.parametrize(
    ("run", "path"),
    [
        (("pytest", "-q", "tests"), "tests/db/t.py"),
        (("pytest", "./tests/db/"), "tests/db/t.py"),
        (("pytest", "tests/db/t.py"), "tests/db/t.py"),
        (("pytest", "--rootdir=tests"), "tests/conftest.py"),
        (("sh", "-c", "cd x && sh 'run.sh'"), "run.sh"),
        (("./check",), "check"),
    ],
)
def test_changed_path_that_the_command_names_is_reported(run: tuple[str, ...], path: str) -> None:
    assert changed_judges([path, "src/other"], [Check("c", run)]) == (path,)


def test_command_that_names_no_changed_path_reports_none() -> None:
    assert changed_judges(["src/a", "testsuite/x"], [Check("c", ("pytest", "tests", ".", "-q"))]) == ()


def test_protected_path_is_reported_unless_it_was_restored_first() -> None:
    paths = ["tests/t.py", "src/a"]
    check = Check("c", ("make",), protect=("tests/**",))
    assert changed_judges(paths, [check]) == ("tests/t.py",)
    assert changed_judges(paths, [check], restored=["c"]) == ()
    assert changed_judges(paths, [check, replace(check, name="d")], restored=["c"]) == ("tests/t.py",)
    named_too = replace(check, run=("pytest", "tests", "src/a"))
    assert changed_judges(paths, [named_too], restored=["c"]) == ("src/a",)


def test_check_that_ran_in_a_pristine_checkout_had_its_protected_paths_restored() -> None:
    check = Check("tests", ("make",), protect=("tests/**",))
    ran = CheckOutcome("tests", ("make",), "passed", exit_code=0, commit=HEAD, checked_in="pristine")
    assert [made_with(check, outcome).changed_judges for outcome in (ran, replace(ran, checked_in="worktree"))] == [
        (),
        ("tests/t.py",),
    ]


def made_with(check: Check, outcome: CheckOutcome) -> Statement:
    return statement_of(
        VERDICT,
        graph=GraphId("g"),
        subtask=SubtaskId("api"),
        attempt=1,
        base=BASE,
        tree=TREE,
        expect="commit",
        changed=["tests/t.py"],
        checks=[check],
        outcomes=[outcome],
        git_version="",
        previous_event="",
    )


# --- the chain -------------------------------------------------------------------------------------------------------

SCHEMA = certificate(replace(MADE, subtask=SubtaskId("schema"), head=BASE))


def built_on(digest: str, *, subtask: str = "schema", commit: CommitId = BASE) -> Certificate:
    return certificate(replace(MADE, prerequisites=(Prerequisite(SubtaskId(subtask), commit, digest),)))


def test_chain_that_holds_has_nothing_wrong() -> None:
    assert links([built_on(SCHEMA.digest), SCHEMA]) == ()
    assert links([]) == ()


def test_missing_prerequisite_certificate_is_named() -> None:
    assert links([built_on("9" * 64)]) == (
        "certificate of api (attempt 2) builds on 999999999999 of schema, which is not there",
    )


def test_prerequisite_certificate_of_something_else_is_named() -> None:
    other = built_on(SCHEMA.digest, subtask="ui")
    moved = built_on(SCHEMA.digest, commit=HEAD)
    wrong = f"certificate of api (attempt 2) builds on {SCHEMA.digest[:12]}, which is not about "
    assert links([SCHEMA, other]) == (wrong + "ui at bbbbbbbbbbbb",)
    assert links([SCHEMA, moved]) == (wrong + "schema at cccccccccccc",)


def test_changed_text_is_named_and_breaks_what_builds_on_it() -> None:
    forged = Certificate(SCHEMA.text.replace('"attempt":2', '"attempt":3'), SCHEMA.digest)
    assert links([built_on(SCHEMA.digest), forged]) == (
        f"certificate {SCHEMA.digest[:12]} does not match its text",
        f"certificate of api (attempt 2) builds on {SCHEMA.digest[:12]} of schema, which is not there",
    )


def test_text_that_matches_its_digest_but_is_no_certificate_is_named() -> None:
    text = "{}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert links([Certificate(text, digest)]) == (
        f"certificate {digest[:12]}: {PREFIX}{{}} where the fields of Statement are expected",
    )
