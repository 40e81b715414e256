"""Generated output of a program that draws: text and the sequences whose meaning every terminal agrees on."""

from hypothesis import strategies as st

_WORD = st.text(st.sampled_from("abz019 .-漢é字🙂"), min_size=1, max_size=9)


def drawing(*, columns: int, rows: int) -> st.SearchStrategy[str]:
    """Up to 25 pieces for a screen of this size.

    Where tmux 3.3 parts from terminals at large is left out: BS in column 0 after a wrapped line goes up there, and
    ICH of all that is right of the cursor does nothing. One more cannot be left out: there a wide character in column
    0 stays when its right half is overwritten. Who compares with tmux takes the same examples every time.
    """
    piece = st.one_of(
        _WORD,
        st.sampled_from(
            ["\r\n", "\n", "\r", "\t", "\x1bM", "\x1bD", "\x1bE", "\x1b7", "\x1b8", "ab\b", "\x1b(0", "\x1b(B", "\x1bH"]
        ),
        st.sampled_from(
            ["\x1b[?1049h", "\x1b[?1049l", "\x1b[?47h", "\x1b[?1047l", "\x1b[?7l", "\x1b[?7h", "\x1b[4h", "\x1b[4l"]
        ),
        st.sampled_from(
            ["\x1b[?6h", "\x1b[?6l", "\x1b[r", "\x1b#8", "\x1b[3g", "\x1b[m", "\x1b[1;38:5:3m", "\x1b]2;x\x07"]
        ),
        st.sampled_from(["e\u0301", "👩‍🚀", "\x1bPx\x1b\\", "\x1b[>1u", "\x1b[?25l", "\x1b[s", "\x1b[u"]),
        _csi("ABCDEFGdSTLMPX", 7),
        _csi("JK", 2),
        st.builds("z\x1b[{}b".format, st.integers(0, 4)),
        st.builds("\x1b[{}G\x1b[{}@".format, st.integers(1, columns - 5), st.integers(1, 3)),
        st.builds("\x1b[{};{}H".format, st.integers(0, rows + 1), st.integers(0, columns + 1)),
        st.builds("\x1b[{};{}r".format, st.integers(0, rows), st.integers(1, rows + 1)),
    )
    return st.lists(piece, min_size=1, max_size=25).map("".join)


def _csi(finals: str, highest: int) -> st.SearchStrategy[str]:
    return st.builds("\x1b[{}{}".format, st.integers(0, highest), st.sampled_from(finals))
