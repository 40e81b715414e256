"""Ignore and attribute files as root-relative rules."""

import pytest

from coordinate_agents.worktrees.rules import Rules, root_ignore, rules_from


@pytest.mark.parametrize(
    ("folder", "line", "rule"),
    [
        ("", "*.o", "*.o"),
        ("", "# note", None),
        ("", "   ", None),
        ("", "a\r", "a"),
        ("d", "x", "/d/**/x"),
        ("d", "x/", "/d/**/x/"),
        ("d", "/x", "/d/x"),
        ("d/e", "a/b", "/d/e/a/b"),
        ("d", "!x", "!/d/**/x"),
        ("d", "!/x/", "!/d/x/"),
        ("d", "**/x", "/d/**/x"),
        ("d", r"\#x", r"/d/**/\#x"),
        ("d", r"\!x", r"/d/**/\!x"),
        ("[d]*", "x", r"/\[d]\*/**/x"),
        ("a\nb", "x", None),
    ],
)
def test_ignore_line_of_a_folder_becomes_a_rule_at_the_top(folder: str, line: str, rule: str | None) -> None:
    assert root_ignore(folder, line) == rule


def test_deeper_rules_come_last_so_that_they_win() -> None:
    files = {"d/e/.gitignore": "!c\n", ".gitignore": "a\n", "d/.gitignore": "b\n"}

    assert rules_from(files).ignores == ("a", "/d/**/b", "!/d/e/**/c")


def test_only_harmless_attributes_stay() -> None:
    text = (
        "# note\n"
        "[attr]gen -text merge=union linguist-generated\n"
        "[attr]evil merge=evil\n"
        "*.lock -merge\n"
        "*.png binary\n"
        "*.txt text eol=lf filter=evil diff=evil\n"
        "*.log merge=union\n"
        "f merge=evil\n"
        "g gen evil unknown\n"
        '"a b" text=auto\n'
        '"oct\\303" text\n'
        "!neg text\n"
        "*.c ident working-tree-encoding=UTF-16\n"
    )
    nested = "[attr]late merge=union\n*.x merge=union\n/y -text\n"

    assert rules_from({".gitattributes": text, "d/.gitattributes": nested}) == Rules(
        attributes=(
            "[attr]gen -text merge=union",
            "[attr]evil",
            "*.lock -merge",
            "*.png binary",
            "*.txt text eol=lf",
            "*.log merge=union",
            "g gen evil",
            '"a b" text=auto',
            "/d/**/*.x merge=union",
            "/d/y -text",
        )
    )
