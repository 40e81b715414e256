"""Masking: nothing planted survives, nothing else changes, however the output is cut."""

import base64
import json
import re
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinate_agents.sessions.host.ring import Ring
from coordinate_agents.sessions.plain import plain
from coordinate_agents.sessions.reading import read
from coordinate_agents.sessions.redact import MASK, MAX_MATCH, Redactor, Stream
from coordinate_agents.sessions.shapes import hints

SECRETS = ("correct-horse-battery", "p@ss word/ä+1", "line one\nline two\nline three", "abcdefgh", "efghijkl")
M = MASK.decode()

KEY = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    + "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n" * 12
    + "-----END OPENSSH PRIVATE KEY-----"
)
TOKENS = (
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2_c3" * 5,
    "sk-ant-api03-" + "xY9_" * 10,
    "glpat-" + "a1B2" * 5,
    "xoxb-123456789012-abcdef",
    "AKIAIOSFODNN7EXAMPLE",
    "AIza" + "a1B2c" * 7,
    "npm_" + "a1B2" * 9,
    "pypi-" + "AgEIcHlwaS5v" * 5,
    "hf_" + "a1B2c3" * 6,
    "sk_live_" + "a1B2" * 6,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27u",
    KEY,
)
# Each with what has to stay.
SHAPES = (
    ("Authorization: Bearer abc123\r\n", f"Authorization: {M}\r\n"),
    ('{"authorization": "Basic dXNlcg==", "x": 1}', f'{{"authorization": "{M}", "x": 1}}'),
    ("AUTHORIZATION=token\n", f"AUTHORIZATION={M}\n"),
    ("Set-Cookie: id=1; Path=/\n", f"Set-Cookie: {M}\n"),
    ("cookie: a=b\nnext", f"cookie: {M}\nnext"),
    ("https://ann:hunter2@example.org/x.git ok", f"https://ann:{M}@example.org/x.git ok"),
    ("postgres://u:p%40@db:5432/x", f"postgres://u:{M}@db:5432/x"),
)
HARMLESS = (
    "https://example.org:8080/path@v1 and user@example.org",
    "the sky-high task-list asks for risk-averse authors",
    "-----BEGIN CERTIFICATE-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END CERTIFICATE-----\n",
    "abcdef ghijkl efgh ijkl correct horse battery",
    "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad\nAKIA eyJ ghp_ sk- npm_",
    "\x1b[31mred\x1b[0m ✓ 🙂 \x00\xff",
)


def cut_and_join(redactor: Redactor, data: bytes, cuts: list[int]) -> bytes:
    stream, out, at = Stream(redactor), [], 0
    for cut in [*sorted(cuts), len(data)]:
        out.append(stream.feed(data[at:cut]))
        at = cut
    return b"".join(out) + stream.finish()


@pytest.mark.parametrize("token", TOKENS)
def test_well_known_shape_is_masked_wherever_it_stands(token: str) -> None:
    redactor = Redactor()
    assert redactor.redact_text(token) == M
    assert redactor.redact_text(f"key={token} next") == f"key={M} next"
    assert redactor.redact_text(f'"{token}"\n') == f'"{M}"\n'


@pytest.mark.parametrize(("text", "masked"), SHAPES)
def test_header_cookie_and_url_keep_all_but_the_secret(text: str, masked: str) -> None:
    assert Redactor().redact_text(text) == masked


@pytest.mark.parametrize("text", HARMLESS)
def test_text_without_a_secret_is_unchanged(text: str) -> None:
    assert Redactor(SECRETS).redact_text(text) == text


@pytest.mark.parametrize("secret", SECRETS)
def test_value_is_masked_in_every_encoding(secret: str) -> None:
    raw = secret.encode()
    redactor = Redactor([secret])
    forms = [
        raw,
        raw.replace(b"\n", b"\r\n"),
        raw.hex().encode(),
        raw.hex().upper().encode(),
        quote(secret, safe="").encode(),
        json.dumps(secret)[1:-1].encode(),
        json.dumps(secret, ensure_ascii=False)[1:-1].encode(),
    ]
    for form in forms:
        assert redactor.redact(b"<" + form + b">") == b"<[redacted]>"


@pytest.mark.parametrize("before", range(6))
@pytest.mark.parametrize("after", range(4))
def test_value_inside_a_longer_base64_text_leaves_at_most_its_edges(before: int, after: int) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(b"\xfb" * before + SECRETS[0].encode() + b"\xff" * after)
        masked = Redactor(SECRETS).redact(text)
        assert MASK in masked
        assert len(masked) - len(MASK) <= 4 * (before // 3 + after // 3 + 3)


def test_overlapping_values_leave_nothing_between() -> None:
    assert Redactor(SECRETS).redact(b"<abcdefghijkl>") == b"<[redacted]>"


def test_key_that_was_cut_off_is_masked_as_far_as_it_goes() -> None:
    cut = KEY.index("\n", 150)
    assert Redactor().redact_text(KEY[:cut] + "\nwhat follows") == M + "what follows"


@pytest.mark.parametrize("planted", [*TOKENS, *SECRETS, *(text for text, _ in SHAPES)])
def test_every_cut_gives_the_same_result(planted: str) -> None:
    redactor = Redactor(SECRETS)
    data = f"before {planted} after\nlast".encode()
    whole = redactor.redact(data)
    for cut in range(len(data) + 1):
        assert cut_and_join(redactor, data, [cut]) == whole
    assert cut_and_join(redactor, data, list(range(len(data)))) == whole


PIECES = st.one_of(
    st.sampled_from([*TOKENS, *SECRETS, *(text for text, _ in SHAPES), *HARMLESS]),
    st.text(max_size=30),
    st.sampled_from(["\n", "\r\n", "x" * 3000, "Authorization:", "-----BEGIN ", "https://a:", "abcdefg"]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=25), st.data())
def test_random_output_cut_anywhere_gives_the_same_result_without_any_value(
    pieces: list[str], data: st.DataObject
) -> None:
    redactor = Redactor(SECRETS)
    output = "".join(pieces).encode("utf-8", "surrogatepass")
    whole = redactor.redact(output)
    cuts = data.draw(st.lists(st.integers(0, len(output)), max_size=12))
    assert cut_and_join(redactor, output, cuts) == whole
    for secret in SECRETS:
        assert secret.encode() not in whole


STAYING = (
    *("\x1b[31m", "\x1b[0m", "\x1b[4:3;58:2::1:2:3m", "\x1b7", "\x1b(B", "\x9b1m", "\x1b[?25l"),
    *("\x1b]0;a title\x07", "\x1b]8;;x\x1b\\", "\x1bP+q\x1b\\", "\x07", "\0"),
)
BETWEEN = st.sampled_from([*STAYING, "\r", "\x08"])


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([secret for secret in SECRETS if "\n" not in secret]),
    st.dictionaries(st.integers(1, 40), st.lists(BETWEEN, max_size=3).map("".join), max_size=8),
    st.data(),
)
def test_value_with_control_sequences_in_it_is_masked_however_it_was_cut(
    secret: str, between: dict[int, str], data: st.DataObject
) -> None:
    redactor = Redactor(SECRETS)
    split = secret[0] + "".join(between.get(at, "") + letter for at, letter in enumerate(secret[1:], 1))
    output = f"\x1b[1mbefore {split} after\x1b[0m\nlast".encode()
    cuts = data.draw(st.lists(st.integers(0, len(output)), max_size=12))
    whole = cut_and_join(redactor, output, cuts)
    assert whole == b"\x1b[1mbefore [redacted] after\x1b[0m\nlast"
    assert read_in_pieces(redactor, output, cuts) == "before [redacted] after\nlast"


def read_in_pieces(redactor: Redactor, output: bytes, cuts: list[int]) -> str:
    """What a reader of the ring gets who reads after every piece."""
    ring = Ring(1 << 20, redactor)
    shown, cursor = "", 0
    for start, end in pairwise([0, *sorted(cuts), len(output)]):
        ring.add(output[start:end])
        ring.is_over = end == len(output)
        piece = read(ring, cursor=cursor, max_bytes=4096, max_lines=None, form="plain")
        shown, cursor = shown + piece.text("plain"), piece.next_cursor
    return shown


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from([*((token, M) for token in TOKENS), *SHAPES]),
    st.dictionaries(st.integers(0, 60), st.lists(st.sampled_from(STAYING), max_size=3).map("".join), max_size=8),
    st.data(),
)
def test_shape_with_control_sequences_in_it_is_masked_however_it_was_cut(
    shape: tuple[str, str], between: dict[int, str], data: st.DataObject
) -> None:
    redactor = Redactor(SECRETS)
    text, masked = shape
    split = "".join(between.get(at, "") + letter for at, letter in enumerate(text))
    output = f"\x1b[1mbefore {split} after\x1b[0m\nlast".encode()
    whole = redactor.redact(output)
    if "://" in text and any(":" in each for each in between.values()):
        # The colon of a sequence is taken for the one before a password: too much is masked, and nothing shows.
        password = text.partition("://")[2].partition(":")[2].partition("@")[0]
        assert password and password not in plain(whole.decode())
        return
    # A sequence before the blank of a header is its value's beginning, and takes the blank along.
    assert _without_blanks(whole.decode()) == _without_blanks(f"before {masked} after\nlast")
    cuts = data.draw(st.lists(st.integers(0, len(output)), max_size=12))
    assert cut_and_join(redactor, output, cuts) == whole
    # The fixed beginning of a token may be read before anybody can know that it is one.
    allowed = {masked} if masked != M else {text[:size] + M for size in range(_fixed(text) + 1)}
    shown = _without_blanks(read_in_pieces(redactor, output, cuts))
    assert shown in {_without_blanks(f"before {one} after\nlast") for one in allowed}


def _without_blanks(text: str) -> str:
    """As a reader sees it, without what a sequence beside a value leaves: a mask of its own before the quote, and an
    empty line where one stands between CR and LF.
    """
    return re.sub(r"\n+", "\n", plain(text).replace(" ", "").replace(f'{M}"{M}', f'"{M}'))


def _fixed(token: str) -> int:
    """The length of what stands before its secret part."""
    if token == KEY:
        return token.index("\n") + 1
    return max(len(hint) + 1 for hint in map(bytes.decode, hints()) if hint in token[:12])


@pytest.mark.parametrize("planted", TOKENS)
def test_coloured_token_is_masked_at_every_cut(planted: str) -> None:
    redactor = Redactor()
    middle = len(planted) // 2
    data = f"\x1b[31m{planted[:middle]}\x1b[1;32m{planted[middle:]}\x1b[0m after\nlast".encode()
    whole = redactor.redact(data)
    assert M in whole.decode()
    assert planted[middle:][:8].encode() not in whole
    for cut in range(len(data) + 1):
        assert cut_and_join(redactor, data, [cut]) == whole
    assert cut_and_join(redactor, data, list(range(len(data)))) == whole


@pytest.mark.parametrize("moves", ["\x1b[2K\x1b[1G", "\r", "\x1b[5;7H", "\x08"])
def test_words_drawn_at_two_places_are_not_one_token(moves: str) -> None:
    text = f"sk-learn-a-word{moves}sk-learn-a-word\n"
    assert Redactor().redact_text(text) == text
    token = TOKENS[0]
    assert Redactor().redact_text(f"x{moves}{token}\n") == f"x{moves}{M}\n"


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=4000))
def test_bytes_without_a_planted_value_are_unchanged(noise: bytes) -> None:
    assert Redactor(["a-value-that-is-not-there"]).redact(noise) == noise or b":" in noise or b"-----BEGIN" in noise


def test_complete_lines_are_given_out_at_once_and_endless_ones_within_the_bound() -> None:
    stream = Stream(Redactor(SECRETS))
    assert stream.feed(b"first line\nsecond ") == b"first line\n"
    held = 0
    for _ in range(200):
        held += 4096 - len(stream.feed(b"y" * 4096))
    assert held <= MAX_MATCH + (16 << 10) + 4096 + len(b"second ")


@pytest.mark.parametrize("size", [1, 3, 4096, 30_000])
def test_token_in_endless_output_is_masked_however_it_was_cut(size: int) -> None:
    token = b"ghp_" + b"A" * 36
    data = b"x" * 50_000 + b" " + token + b" " + b"x" * 40_000 + b"\n"
    data = data if size > 3 else data[40_000:60_000] + b"\n"
    stream = Stream(Redactor())
    pieces = [stream.feed(data[at : at + size]) for at in range(0, len(data), size)]
    assert b"".join([*pieces, stream.finish()]) == data.replace(token, MASK)
