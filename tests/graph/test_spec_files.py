"""A spec file is read from the folder of the graph file, and from nowhere else."""

import os
from pathlib import Path

import pytest

from coordinate_agents.graph import document
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.spec_files import spec_file_reader


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "plans"
    made.mkdir()
    (tmp_path / "secret").write_text("outside")
    return made


def _problem(folder: Path, name: str) -> str:
    text = f"subtasks: [{{id: a, specFile: {name!r}}}]".encode()
    with pytest.raises(GraphError) as raised:
        document.parse(text, name="g.yaml", stem="g", read_spec_file=spec_file_reader(folder))
    assert [problem.path for problem in raised.value.problems] == ["subtasks[0].specFile"]
    return raised.value.problems[0].message


def test_file_below_the_folder_is_the_spec(folder: Path) -> None:
    (folder / "notes").mkdir()
    (folder / "notes" / "a.md").write_bytes(b"\xef\xbb\xbfDo it.\nWell.\n")
    (folder / "link.md").symlink_to("notes/a.md")
    for name in ("notes/a.md", "link.md", "./notes/a.md"):
        graph = document.parse(
            f"subtasks: [{{id: a, specFile: {name}}}]".encode(),
            name="g.yaml",
            stem="g",
            read_spec_file=spec_file_reader(folder),
        )
        assert graph.tasks[0].spec == "Do it.\nWell.\n"
        assert graph.tasks[0].title == "Do it."


def test_path_that_leaves_the_folder_is_refused(folder: Path) -> None:
    (folder / "out").symlink_to("..")
    (folder / "secret").symlink_to("../secret")
    outside = "specFile {} cannot be read: it leads out of the folder of the graph file through a symbolic link"
    assert _problem(folder, "out/secret") == outside.format("'out/secret'")
    assert _problem(folder, "secret") == outside.format("'secret'")
    assert _problem(folder, "../secret") == "path '../secret' holds '..' and may leave its folder; write it without"
    assert _problem(folder, "/etc/hosts") == "path '/etc/hosts' is absolute; write it relative"


def test_what_is_no_readable_text_is_refused(folder: Path) -> None:
    (folder / "sub").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "latin.md").write_bytes(b"a\ncaf\xe9")
    (folder / "large.md").write_text("x" * 262145)
    (folder / "huge.md").write_text("x" * 600000)
    (folder / "loop").symlink_to("loop")
    assert _problem(folder, "sub") == "specFile 'sub' cannot be read: it is not a regular file"
    assert _problem(folder, "pipe") == "specFile 'pipe' cannot be read: it is not a regular file"
    assert _problem(folder, "latin.md") == (
        "specFile 'latin.md', line 2: byte 5 (0xE9) is not UTF-8; is the file Latin-1? Save it as UTF-8"
    )
    assert _problem(folder, "large.md") == "specFile 'large.md' has more than 262144 bytes (256 KiB)"
    assert _problem(folder, "huge.md") == "specFile 'huge.md' cannot be read: it has more than 262144 bytes (256 KiB)"
    assert "specFile 'loop' cannot be read: " in _problem(folder, "loop")
    assert _problem(folder, "none.md") == "specFile 'none.md' cannot be read: No such file or directory"
