"""Single values of a configuration file are changed; everything else of its text stays."""

import pytest

from coordinate_agents.cli.setup.config_edit import Change, Edited, edit

FILE = """\
# how we work here
version: 1
defaultAgent: backend   # the one that knows the database
agents:
  # keep this first
  backend:
    adapter: generic
    command: ./tools/agent.sh  # not the old one
    args:
      - --task
      - "{promptFile}"
  other:
    command: /usr/bin/other
setup: [[npm, ci]]
"""


def _set(*path: str, value: str | tuple[str, ...] | dict[str, str] | None) -> Change:
    return Change(path, value)


def test_a_value_is_replaced_and_its_comment_stays() -> None:
    assert edit(FILE, [_set("agents", "backend", "command", value="/opt/my agent")]) == Edited(
        FILE.replace("./tools/agent.sh", '"/opt/my agent"'), True
    )


def test_a_key_is_added_at_the_end_of_its_agent() -> None:
    assert edit(FILE, [_set("agents", "backend", "permissions", value="allow")]) == Edited(
        FILE.replace('      - "{promptFile}"\n', '      - "{promptFile}"\n    permissions: allow\n'), True
    )


def test_a_list_over_several_lines_is_replaced_as_a_whole() -> None:
    assert edit(FILE, [_set("agents", "backend", "args", value=("-p", "no"))]).text == FILE.replace(
        '      - --task\n      - "{promptFile}"\n', '      ["-p", "no"]\n'
    )


def test_an_agent_is_added_behind_the_others_with_all_its_settings() -> None:
    changes = [_set("agents", "new", "adapter", value="codex"), _set("agents", "new", "env", value={"LEVEL": "2"})]
    assert edit(FILE, changes) == Edited(
        FILE.replace(
            "    command: /usr/bin/other\n",
            '    command: /usr/bin/other\n  new:\n    adapter: codex\n    env: {LEVEL: "2"}\n',
        ),
        True,
    )


def test_an_agent_is_removed_with_its_lines_only() -> None:
    start, end = FILE.index("  other:"), FILE.index("setup:")
    assert edit(FILE, [_set("agents", "other", value=None)]) == Edited(FILE[:start] + FILE[end:], True)


def test_the_only_agent_is_removed_and_another_takes_its_place() -> None:
    text = "version: 1\nagents:\n  one: {command: a}\n# end\n"
    emptied = edit(text, [_set("agents", "one", value=None)])
    assert emptied == Edited("version: 1\nagents:\n# end\n", True)
    assert edit(emptied.text, [_set("agents", "two", "command", value="b")]).text == (
        "version: 1\nagents:\n  two:\n    command: b\n# end\n"
    )


def test_an_inline_mapping_takes_the_new_entry_inline() -> None:
    text = "version: 1  # first\nagents: {local: {adapter: generic, command: a}}\n"
    assert edit(text, [_set("agents", "local", "commit", value="auto")]) == Edited(
        "version: 1  # first\nagents: {local: {adapter: generic, command: a, commit: auto}}\n", True
    )


@pytest.mark.parametrize("text", ["", "\n", "# nothing yet\n"])
def test_an_empty_file_becomes_a_whole_one(text: str) -> None:
    done = edit(text, [_set("defaultAgent", value="codex")])
    assert done.text.endswith("version: 1\ndefaultAgent: codex\n")


def test_what_is_there_already_changes_nothing() -> None:
    assert edit(FILE, [_set("agents", "backend", "adapter", value="generic")]) == Edited(FILE, True)
    assert edit(FILE, [_set("agents", "nobody", value=None)]) == Edited(FILE, True)


def test_a_file_without_a_last_line_end_is_continued_on_a_new_line() -> None:
    assert edit("version: 1\nagents: {a: {command: b}}", [_set("defaultAgent", value="a")]).text == (
        "version: 1\nagents: {a: {command: b}}\ndefaultAgent: a\n"
    )


def test_a_shared_node_is_not_changed_for_both_and_the_loss_of_comments_is_told() -> None:
    text = "# two of a kind\nversion: 1\nagents:\n  a: &same {command: x}\n  b: *same\n"
    done = edit(text, [_set("agents", "b", "command", value="y")])
    assert not done.keeps_comments
    again = edit(done.text, [_set("agents", "b", "command", value="y")])
    assert again == Edited(done.text, True)
    assert "command: x" in done.text


@pytest.mark.parametrize(
    "value",
    [
        "no",
        "~",
        "1.10",
        "a: b",
        "#x",
        "{x}",
        "ü",
        '"',
        "\\",
        "it's",
        " x ",
        "- a",
        "é\n",
        "x\x9bé🙂",
        "\x7f",
        "a\x85b",
        "a\u2028b",
        "\ufeffx",
        "\ufffe",
    ],
)
def test_any_text_comes_out_as_it_was_given(value: str) -> None:
    done = edit(FILE, [_set("agents", "backend", "command", value=value)])
    assert edit(done.text, [_set("agents", "backend", "command", value=value)]).text == done.text
    assert done.keeps_comments
