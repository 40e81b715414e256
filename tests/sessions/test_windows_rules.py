"""Windows' rules, tested anywhere: what a command line says is read back by the rules of its readers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from windows import split

from coordinate_agents.sessions.windows import names, programs, quoting

TEXT = st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=30)
HOSTILE = st.text(alphabet=st.sampled_from(list('a \t"\\%&|<>^()!,;=:~é')), max_size=20)


def expanded(line: str, variables: dict[str, str]) -> str:
    """What cmd.exe makes of percent signs on its command line, with the extensions on; `~,` is an empty part."""
    out, at = "", 0
    while at < len(line):
        end = line.find("%", at + 1) if line[at] == "%" else -1
        name, _, part = line[at + 1 : end].partition(":") if end > 0 else ("", "", "")
        if name.lower() in variables:
            assert part in ("", "~,")
            out += "" if part else variables[name.lower()]
            at = end + 1
        else:
            out += line[at]
            at += 1
    return out


def after_cmd(line: str, interpreter: str) -> list[str]:
    """The script and the arguments that a batch file gives on as `%*`, when cmd.exe was given the line."""
    head = f'"{interpreter}" /e:ON /v:OFF /d /c "'
    assert line.startswith(head) and line.endswith('"')
    inner = expanded(line[len(head) : -1], {"cd": "C:\\here", "a": "EVIL", "path": "EVIL"})
    is_quoted = False
    for letter in inner:
        is_quoted ^= letter == '"'
        assert is_quoted or letter not in "&|<>^()\n\r", f"{letter!r} is a command to cmd.exe in {inner!r}"
    return split(inner)


@given(st.lists(TEXT | HOSTILE, max_size=5))
def test_program_reads_back_the_arguments_it_was_given(arguments: list[str]) -> None:
    program = r"C:\Program Files\agent.exe"
    assert split(quoting.command_line([program, *arguments])) == [program, *arguments]


@given(st.lists(HOSTILE, max_size=5))
def test_batch_file_reads_back_the_arguments_it_was_given(arguments: list[str]) -> None:
    script, interpreter = r"C:\a b\agent.cmd", r"C:\Windows\System32\cmd.exe"
    assert after_cmd(quoting.batch_line(interpreter, script, arguments), interpreter) == [script, *arguments]


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        ("plain", "plain"),
        ("", '""'),
        ("two words", '"two words"'),
        ('say "hi"', r'"say \"hi\""'),
        ("ends\\", "ends\\"),
        ("a b\\", '"a b\\\\"'),
        (r"a\b", r"a\b"),
        ('a\\"b', '"a\\\\\\"b"'),
    ],
)
def test_argument_of_a_program_is_quoted_as_documented(argument: str, line: str) -> None:
    assert quoting.quote(argument) == line


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        ("plain", "plain"),
        ("é", "é"),
        ("", '""'),
        ("a&calc.exe", '"a&calc.exe"'),
        ('"&calc.exe', '"""&calc.exe"'),
        ("%PATH%", '"%%cd:~,%PATH%%cd:~,%"'),
        ("C:\\x\\", '"C:\\x\\\\"'),
        ("a=b", '"a=b"'),
    ],
)
def test_argument_of_a_batch_file_can_begin_no_command_and_no_variable(argument: str, line: str) -> None:
    assert quoting.quote_for_cmd(argument) == line


@pytest.mark.parametrize("argument", ["a\nb", "a\rb", "a\0b"])
def test_argument_that_cmd_cannot_be_given_is_refused(argument: str) -> None:
    with pytest.raises(quoting.CannotQuote, match="cannot be passed"):
        quoting.quote_for_cmd(argument)


@pytest.mark.parametrize("script", ['C:\\a"b.cmd', "C:\\%a%.cmd", "C:\\a.cmd\\", "C:\\a\n.cmd"])
def test_batch_file_with_a_name_that_cmd_would_read_otherwise_is_refused(script: str) -> None:
    with pytest.raises(quoting.CannotQuote):
        quoting.batch_line("C:\\cmd.exe", script, [])


def test_line_that_is_too_long_is_refused_and_never_cut() -> None:
    with pytest.raises(quoting.CannotQuote, match="32766"):
        quoting.command_line(["C:\\a.exe", "x" * 32_766])
    with pytest.raises(quoting.CannotQuote, match="8191"):
        quoting.batch_line("C:\\cmd.exe", "C:\\a.cmd", ["x" * 8_191])
    quoting.command_line(["C:\\a.exe", "😀" * 16_000])
    with pytest.raises(quoting.CannotQuote):
        quoting.command_line(["C:\\a.exe", "😀" * 16_400])  # two units each


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("C:\\a\\codex.exe", "program"),
        ("C:\\a\\X.COM", "program"),
        ("C:\\a\\codex.cmd", "batch"),
        ("C:\\a\\codex.BAT", "batch"),
        ("C:\\a\\codex.ps1", "powershell"),
        ("C:\\a\\codex", None),
        ("C:\\a\\codex.js", None),
        ("C:\\a\\codex.bat.", None),
        ("C:\\a\\codex.bat ", None),
        ("C:\\a\\codex.exe:stream.bat", None),
        ("C:\\a\\nul.exe", None),
    ],
)
def test_kind_of_program_follows_from_its_ending(path: str, kind: str | None) -> None:
    assert programs.kind_of(path) == kind


FILES = {
    "C:\\npm\\codex",
    "C:\\npm\\codex.cmd",
    "C:\\npm\\codex.ps1",
    "C:\\bin\\codex.exe",
    "C:\\bin\\my.agent.exe",
    "C:\\ps\\only.ps1",
    "C:\\repo\\tools\\agent.bat",
}


def find(command: str, path: str = "C:\\npm;C:\\bin;C:\\ps", pathext: str = ".EXE;.CMD;.VBS") -> programs.Found:
    return programs.find(
        command,
        relative_to="C:\\repo",
        path=path,
        pathext=pathext,
        reason_to_skip=lambda entry: "below the repository" if entry.startswith("C:\\repo") else None,
        is_file=FILES.__contains__,
    )


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("codex", "C:\\npm\\codex.cmd"),  # never the shell script beside it
        ("codex.exe", "C:\\bin\\codex.exe"),
        ("codex.cmd", "C:\\npm\\codex.cmd"),
        ("my.agent", "C:\\bin\\my.agent.exe"),
        ("only", "C:\\ps\\only.ps1"),
        ("tools/agent", None),  # .bat is not in this PATHEXT
        ("tools\\agent.bat", "C:\\repo\\tools\\agent.bat"),
        ("C:\\bin\\codex", "C:\\bin\\codex.exe"),
        ("agent", None),
    ],
)
def test_command_is_looked_up_by_the_endings_of_pathext(command: str, found: str | None) -> None:
    assert find(command).path == (found.lower() if found else None) or find(command).path == found


def test_places_that_may_be_the_repositorys_are_not_looked_at() -> None:
    assert find("agent.bat", path="C:\\repo\\tools;;tools").looked == (
        "C:\\repo\\tools\\agent.bat: not looked at, below the repository",
        "agent.bat: not looked at, an empty PATH entry means the current folder",
        "tools\\agent.bat: not looked at, a relative PATH entry",
    )


def test_every_place_that_was_looked_at_is_named() -> None:
    assert find("gone", path="C:\\bin").looked == (
        "C:\\bin\\gone.exe: does not exist",
        "C:\\bin\\gone.cmd: does not exist",
        "C:\\bin\\gone.ps1: does not exist",
    )


def test_empty_pathext_means_the_systems_own() -> None:
    assert programs.endings("") == (".com", ".exe", ".bat", ".cmd", ".ps1")


def test_interpreters_are_named_by_the_systems_folder() -> None:
    batch = programs.start_line("C:\\npm\\codex.cmd", ["exec", "-"], system_root="C:\\Windows")
    assert batch == programs.StartLine(
        "C:\\Windows\\System32\\cmd.exe", '/e:ON /v:OFF /d /c ""C:\\npm\\codex.cmd" exec -"'
    )
    script = programs.start_line("C:\\ps\\only.ps1", ["a b"], system_root="D:\\Win")
    assert script == programs.StartLine(
        "D:\\Win\\System32\\WindowsPowerShell\\v1.0\\powershell.exe",
        '-NoLogo -NoProfile -File C:\\ps\\only.ps1 "a b"',
    )
    program = programs.start_line("C:\\Program Files\\a.exe", [], system_root="C:\\Windows")
    assert (program.rest, program.whole) == ("", '"C:\\Program Files\\a.exe"')


def test_file_that_is_no_program_is_not_started() -> None:
    with pytest.raises(quoting.CannotQuote, match="is no program"):
        programs.start_line("C:\\npm\\codex", [], system_root="C:\\Windows")


@pytest.mark.parametrize("name", ["con", "CON", "Nul.txt", "com1", "LPT9.log", "com¹", "aux .c", "conin$"])
def test_device_names_are_refused_whatever_follows_them(name: str) -> None:
    assert names.name_problem(name) == "is the name of a device"


@pytest.mark.parametrize("name", ["console", "com", "com10", "nulls", ".con", "a.nul", "é", "a b"])
def test_names_that_only_look_like_devices_are_good(name: str) -> None:
    assert names.name_problem(name) is None


@pytest.mark.parametrize("name", ["a.", "a ", "a:b", "a?", 'a"', "a\tb", ""])
def test_names_that_windows_would_change_or_refuse_are_problems(name: str) -> None:
    assert names.name_problem(name) is not None


def test_paths_that_depend_on_the_current_drive_are_refused() -> None:
    assert names.path_problem("\\a") == "is not absolute: it needs a drive or a server"
    assert names.path_problem("C:a") == "is not absolute: it needs a drive or a server"
    assert names.path_problem("\\\\.\\pipe\\x") == "names a device"
    assert names.path_problem("C:\\a\\NUL\\b") == "'NUL' is the name of a device"
    assert names.path_problem("\\\\server\\share\\a") is None


def test_long_paths_get_the_prefix_that_lifts_the_limit() -> None:
    long = "\\".join(["x" * 50] * 6)
    assert names.extended("C:\\short") == "C:\\short"
    assert names.extended(f"C:\\a\\..\\{long}") == f"\\\\?\\C:\\{long}"
    assert names.extended(f"C:/a/{long}") == f"\\\\?\\C:\\a\\{long}"
    assert names.extended(f"\\\\server\\share\\{long}") == f"\\\\?\\UNC\\server\\share\\{long}"
    assert names.extended(f"\\\\?\\C:\\{long}") == f"\\\\?\\C:\\{long}"


def test_folder_that_is_too_long_for_a_process_is_refused() -> None:
    assert names.folder_problem("C:\\" + "x" * 255) is None
    assert "starts no process" in (names.folder_problem("C:\\" + "x" * 256) or "")
