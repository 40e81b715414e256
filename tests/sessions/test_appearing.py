"""A file is noticed when it is finished, however it comes into its place, and nothing else is taken for it."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from coordinate_agents.sessions.appearing import appears

pytestmark = [pytest.mark.anyio, pytest.mark.skipif("sys.platform != 'linux'")]


async def _while_waiting(path: Path, act: Callable[[], object]) -> None:
    """Act once it waits; return when it was told."""
    async with anyio.create_task_group() as group:
        group.start_soon(appears, path)
        await anyio.wait_all_tasks_blocked()
        act()


async def test_a_file_that_is_there_already_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "submit").touch()
    await appears(tmp_path / "submit")


async def test_a_file_is_told_when_it_was_written_or_renamed_into_its_place(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        await _while_waiting(tmp_path / "submit", lambda: (tmp_path / "submit").write_text("done"))
        draft = tmp_path / "draft"
        draft.write_text("done")
        await _while_waiting(tmp_path / "other", lambda: draft.rename(tmp_path / "other"))


async def test_other_files_and_folders_of_that_name_are_not_taken_for_it(tmp_path: Path) -> None:
    path, came = tmp_path / "submit", []

    async def wait() -> None:
        await appears(path)
        came.append(path.read_text())

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            for step in (lambda: (tmp_path / "record.json").write_text("{}"), path.mkdir, path.rmdir):
                await anyio.wait_all_tasks_blocked()
                step()
            await anyio.wait_all_tasks_blocked()
            assert came == []
            path.write_text("words")
    assert came == ["words"]


async def test_a_folder_that_is_not_there_is_waited_for_without_a_word(tmp_path: Path) -> None:
    with anyio.move_on_after(0) as scope:
        await appears(tmp_path / "nowhere" / "submit")
    assert scope.cancelled_caught
