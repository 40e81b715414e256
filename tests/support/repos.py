"""Real repositories for tests, made in a temporary folder."""

import subprocess
from pathlib import Path


def git(cwd: Path | str, *args: str, input: str | None = None, env: dict[str, str] | None = None) -> str:
    """Run git and return its stripped output. Raises: CalledProcessError."""
    done = subprocess.run(["git", *args], cwd=cwd, input=input, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit_file(repo: Path, name: str, text: str, message: str | None = None) -> str:
    """Write one file, commit it, and return the commit."""
    path = repo / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    git(repo, "add", "--", name)
    git(repo, "commit", "-q", "-m", message or f"add {name}")
    return git(repo, "rev-parse", "HEAD")


def make_repo(path: Path, *, object_format: str = "sha1") -> Path:
    """A repository on branch main with one commit."""
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main", f"--object-format={object_format}")
    commit_file(path, "README.md", "# sample\n", "first")
    return path
