"""The shapes of well-known secrets, and how output that has none of them is told quickly.

Runs in hosts: stdlib only.
"""

from coordinate_agents.sessions.between import BETWEEN, STAYING, UNFINISHED, compiled

KEY_OPENING = b"-----BEGIN"

# Each shape: a literal that is looked for first, since that is much faster than any expression, and the expression,
# which starts as near to that literal as it can; what its one group holds is masked. No expression may need more than
# a bounded number of steps per byte, whatever an agent prints.
SHAPES: tuple[tuple[bytes, bytes], ...] = (
    *((b"gh%c_" % letter, rb"\b(gh%c_[A-Za-z0-9]{36,255})" % letter) for letter in b"pousr"),
    (b"github_pat_", rb"\b(github_pat_[A-Za-z0-9_]{22,255})"),
    (b"glpat-", rb"\b(glpat-[A-Za-z0-9_-]{20,128})"),
    (b"sk-", rb"\b(sk-[A-Za-z0-9_-]{20,512})"),
    (b"k_live_", rb"\b([rs]k_live_[A-Za-z0-9]{16,255})"),
    (b"k_test_", rb"\b([rs]k_test_[A-Za-z0-9]{16,255})"),
    (b"xox", rb"\b(xox[abeoprs]-[A-Za-z0-9-]{10,512})"),
    (b"AKIA", rb"\b(AKIA[0-9A-Z]{16})\b"),
    (b"ASIA", rb"\b(ASIA[0-9A-Z]{16})\b"),
    (b"AIza", rb"\b(AIza[0-9A-Za-z_-]{35})"),
    (b"npm_", rb"\b(npm_[A-Za-z0-9]{36})"),
    (b"pypi-", rb"\b(pypi-[A-Za-z0-9_-]{50,1024})"),
    (b"hf_", rb"\b(hf_[A-Za-z0-9]{30,128})"),
    (b"eyJ", rb"\b(eyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,2048})"),
    *(
        (name, name + rb"[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?([^\s\"'][^\r\n\"']{0,8191})")
        for name in (b"uthorization", b"UTHORIZATION")
    ),
    (b"ookie:", rb"(?<=[Cc])ookie:[ \t]{0,8}([^\s][^\r\n]{0,8191})"),
    (b"://", rb"://[^\s/:@\"'<>]{0,256}:([^\s/@\"'<>]{1,512})@"),
    (
        KEY_OPENING,
        rb"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rb"(?:(?:[^-]|-(?!----BEGIN)){1,16384}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rb"|(?:[\s,\"']|\\[nr]){0,8}(?:[A-Za-z0-9+/=]{16,128}(?:[\s,\"']|\\[nr]){0,8}){1,100}))",
    ),
)

# The letters of each hint, those first that ordinary output has least of. One letter is found ten times faster than a
# word, and one that is not there at all answers for every shape that needs it.
_BY_RARITY = b"JZIzU_Ax:-kywgbpfhudlsmrntaoie"


def letters_of(word: bytes) -> tuple[bytes, ...]:
    return tuple(bytes([letter]) for letter in sorted(set(word), key=lambda one: (_BY_RARITY.find(one), one)))


LETTERS = tuple(letters_of(hint) for hint, _ in SHAPES)


class Letters(dict[bytes, bool]):
    """Whether a letter is in the data from some place on; each is looked for once, when first asked for."""

    __slots__ = ("_data", "_start")

    def __init__(self, data: bytes, start: int) -> None:
        self._data, self._start = data, start

    def all(self, letters: tuple[bytes, ...]) -> bool:
        """Whether each of them is there."""
        return all(map(self.__getitem__, letters))

    def __missing__(self, letter: bytes) -> bool:
        found = self[letter] = self._data.find(letter, self._start) >= 0
        return found


def possible(has: Letters) -> list[int]:
    """The shapes all of whose letters are there, by their number. Quick where few are."""
    return [index for index, letters in enumerate(LETTERS) if has[letters[0]] and has.all(letters)]


def compile_shapes() -> None:
    """Compile every shape now: for a process that forks hosts, so that each of them has them."""
    for expression in (*(shape for _, shape in SHAPES), BETWEEN, STAYING, UNFINISHED):
        compiled(expression)


def hints() -> list[bytes]:
    """The literal that each shape starts near to."""
    return [hint for hint, _ in SHAPES]
