"""How a program on Windows reads its command line, for tests: an implementation of CommandLineToArgvW."""


def split(line: str) -> list[str]:
    """CommandLineToArgvW with the C runtime's reading of two quotes (one quote, and the quoting goes on)."""
    out, at = [], 0
    if line.startswith('"'):
        at = line.index('"', 1) + 1
        out.append(line[1 : at - 1])
    else:
        while at < len(line) and line[at] not in " \t":
            at += 1
        out.append(line[:at])
    while True:
        while at < len(line) and line[at] in " \t":
            at += 1
        if at == len(line):
            return out
        word, at = _word(line, at)
        out.append(word)


def _word(line: str, at: int) -> tuple[str, int]:
    word, is_quoted = "", False
    while at < len(line) and (is_quoted or line[at] not in " \t"):
        count = len(line[at:]) - len(line[at:].lstrip("\\"))
        at += count
        if at < len(line) and line[at] == '"':
            word += "\\" * (count // 2)
            if count % 2:
                word += '"'
            elif is_quoted and line[at + 1 : at + 2] == '"':
                word += '"'
                at += 1
            else:
                is_quoted = not is_quoted
            at += 1
        elif count:
            word += "\\" * count
        else:
            word += line[at]
            at += 1
    return word, at
