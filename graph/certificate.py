"""The certificate of a verdict: one canonical JSON text that says what was verified, and its digest.

Writes, reads and compares certificates; verifies nothing in git (`graph-verify` does, with what stands here). The same
verdict gives the same text: keys sorted, no spaces, ASCII only, whole numbers only, so that the digest of the text is
the digest of the facts. A certificate names those of its prerequisites by digest and the event before it by hash, so
that none can be replaced without the next ones saying so.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from coordinate_agents.graph.canonical import text_of, value_of
from coordinate_agents.graph.evidence import CheckOutcome, Fact, Verdict, Waiver
from coordinate_agents.graph.model import Check, CommitId, GraphId, SubtaskId
from coordinate_agents.graph.scope import covered
from coordinate_agents.worktrees.values import value_class

VERSION: Final = 1
# Changed paths that stand in the text; all of them are in its digest and its count.
PATHS_KEPT: Final = 200
MAX_BYTES: Final = 4 << 20

# Words of an argument that may be paths: `--rootdir=tests`, `sh -c 'pytest tests/db'`.
_WORD_ENDS: Final = re.compile(r"[\s'\"=;&|()<>]+")


@value_class
class Prerequisite:
    """A certificate that this one builds on."""

    subtask: SubtaskId
    commit: CommitId
    certificate: str


@value_class
class ChangedPaths:
    """All changed paths by count and digest; `first` are at most PATHS_KEPT of them, sorted."""

    count: int
    digest: str
    first: tuple[str, ...]


@value_class
class CheckRecord:
    """What ran, on which commit and tree, and how it ended."""

    name: str
    run: tuple[str, ...]
    outcome: str
    exit_code: int | None
    signal: int | None
    commit: str | None
    tree: str | None
    checked_in: str
    duration_ms: int


@value_class
class Statement:
    """What a certificate says.

    `changed_judges`: changed paths that decide over this subtask: protected ones that were not restored, and those
    that a check's command names. `previous_event` is the hash of the event before the verdict.
    """

    graph: GraphId
    subtask: SubtaskId
    attempt: int
    base: CommitId
    head: CommitId
    tree: str
    expect: str
    changed: ChangedPaths
    changed_judges: tuple[str, ...]
    checks: tuple[CheckRecord, ...]
    facts: tuple[Fact, ...]
    waivers: tuple[Waiver, ...]
    prerequisites: tuple[Prerequisite, ...]
    git_version: str
    previous_event: str
    version: int = VERSION


@value_class
class Certificate:
    """The canonical text and the SHA-256 of it, in lower-case hexadecimal."""

    text: str
    digest: str


class CertificateError(ValueError):
    """The text is no certificate of this version, or not in its canonical form."""


def certificate(statement: Statement) -> Certificate:
    """The one text of this statement. Raises: CertificateError when it is too long or a value has no text."""
    try:
        text = text_of(statement)
    except TypeError as error:
        raise CertificateError(str(error)) from error
    if len(text) > MAX_BYTES:
        raise CertificateError(f"a certificate of {len(text)} bytes is longer than {MAX_BYTES}")
    return Certificate(text, digest_of(text))


def parse(text: str) -> Statement:
    """The statement of a certificate's text. Raises: CertificateError, also when the text is not canonical."""
    if len(text) > MAX_BYTES:
        raise CertificateError(f"a certificate of {len(text)} bytes is longer than {MAX_BYTES}")
    try:
        statement = value_of(Statement, text)
    except (ValueError, TypeError, AssertionError, RecursionError) as error:
        raise CertificateError(f"not a certificate of version {VERSION}: {error}") from error
    if statement.version != VERSION:
        raise CertificateError(f"a certificate of version {statement.version}; this program knows {VERSION}")
    return statement


def digest_of(text: str) -> str:
    """SHA-256 of the text, in lower-case hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def links(certificates: Iterable[Certificate]) -> tuple[str, ...]:
    """What is wrong with the chain, one line each, in subtask order; empty when it holds.

    Every text must be canonical and match its digest, and every prerequisite must name a certificate given here, of
    that subtask and that commit. Give all of a graph, also those of earlier attempts.
    """
    statements: dict[str, Statement] = {}
    wrong: list[tuple[str, str]] = []
    for each in certificates:
        if digest_of(each.text) != each.digest:
            wrong.append(("", f"certificate {each.digest[:12]} does not match its text"))
            continue
        try:
            statements[each.digest] = parse(each.text)
        except CertificateError as error:
            wrong.append(("", f"certificate {each.digest[:12]}: {error}"))
    for statement in statements.values():
        wrong += [(statement.subtask, text) for text in _broken(statement, statements)]
    return tuple(text for _, text in sorted(wrong))


def changed_of(paths: Iterable[str]) -> ChangedPaths:
    """Count, digest and first of these paths; their order and repetitions do not matter."""
    every = sorted(set(paths))
    # NUL ends each path: no path holds one, so two sets never give one text.
    digest = hashlib.sha256("".join(f"{path}\0" for path in every).encode("utf-8", "surrogatepass")).hexdigest()
    return ChangedPaths(len(every), digest, tuple(every[:PATHS_KEPT]))


def changed_judges(paths: Sequence[str], checks: Sequence[Check], *, restored: Collection[str] = ()) -> tuple[str, ...]:
    """The changed paths that decide over the subtask itself, sorted.

    `restored` names the checks that ran where their protected paths had been set back: there these decide nothing.
    """
    deciding: set[str] = set()
    for check in checks:
        protected = frozenset(covered(paths, check.protect))
        named = frozenset(path for path in paths if _names(check.run, path))
        deciding |= named - protected if check.name in restored else named | protected
    return tuple(sorted(deciding))


def records_of(outcomes: Iterable[CheckOutcome]) -> tuple[CheckRecord, ...]:
    """What a certificate keeps of check outcomes; logs and tails stay beside it."""
    return tuple(
        CheckRecord(
            name=each.name,
            run=each.run,
            outcome=each.outcome,
            exit_code=each.exit_code,
            signal=each.signal,
            commit=each.commit,
            tree=each.tree,
            checked_in=each.checked_in,
            duration_ms=each.duration_ms,
        )
        for each in outcomes
    )


def statement_of(
    verdict: Verdict,
    *,
    graph: GraphId,
    subtask: SubtaskId,
    attempt: int,
    base: CommitId,
    tree: str,
    expect: str,
    changed: Sequence[str],
    checks: Sequence[Check],
    outcomes: Sequence[CheckOutcome],
    waivers: Sequence[Waiver] = (),
    prerequisites: Sequence[Prerequisite] = (),
    git_version: str,
    previous_event: str,
) -> Statement:
    """What an accepted verdict certifies. Raises: CertificateError for a verdict that was not accepted."""
    if not verdict.accepted or verdict.commit is None:
        raise CertificateError("a verdict that was not accepted has no certificate")
    restored = {each.name for each in outcomes if each.checked_in == "pristine"}
    return Statement(
        graph=graph,
        subtask=subtask,
        attempt=attempt,
        base=base,
        head=CommitId(verdict.commit),
        tree=tree,
        expect=expect,
        changed=changed_of(changed),
        changed_judges=changed_judges(changed, checks, restored=restored)[:PATHS_KEPT],
        checks=records_of(outcomes),
        facts=verdict.facts,
        waivers=tuple(waivers),
        prerequisites=tuple(sorted(prerequisites, key=lambda each: each.subtask)),
        git_version=git_version,
        previous_event=previous_event,
    )


def _broken(statement: Statement, statements: Mapping[str, Statement]) -> Iterable[str]:
    for needed in statement.prerequisites:
        found = statements.get(needed.certificate)
        of = f"certificate of {statement.subtask} (attempt {statement.attempt})"
        if found is None:
            yield f"{of} builds on {needed.certificate[:12]} of {needed.subtask}, which is not there"
        elif (found.subtask, found.head, found.graph) != (needed.subtask, needed.commit, statement.graph):
            about = f"{needed.subtask} at {needed.commit[:12]}"
            yield f"{of} builds on {needed.certificate[:12]}, which is not about {about}"


def _names(run: Sequence[str], path: str) -> bool:
    """Whether a command names the path or a folder above it."""
    for argument in run:
        for word in _WORD_ENDS.split(argument):
            name = word.removeprefix("./").rstrip("/")
            if name and name != "." and (path == name or path.startswith(name + "/")):
                return True
    return False
