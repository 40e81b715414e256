"""Agents that write into what all worktrees share: reported at once, blamed where it can be, never run by us."""

from pathlib import Path

import pytest
from world import World, git

pytestmark = pytest.mark.story

COMMIT = 'echo "$S" > "f-$S"; git add -A; git commit -q -m "work of $S"'


def test_planted_programs_never_run_and_block_the_integration(world: World) -> None:
    trap = world.place / "ran"
    body = f"""
git config core.fsmonitor 'sh -c "touch {trap}1; false"'
git config merge.ev.driver 'sh -c "touch {trap}2; false"'
git config filter.ev.clean 'sh -c "touch {trap}5; cat"'
printf 'f-* merge=ev filter=ev\\n' > .gitattributes
hooks=$(git rev-parse --git-common-dir)/hooks; mkdir -p "$hooks"
for hook in post-checkout pre-commit commit-msg post-merge reference-transaction; do
  printf '#!/bin/sh\\ntouch {trap}3\\n' > "$hooks/$hook"; chmod +x "$hooks/$hook"; done
"""
    # The agents' own git must not spring the traps either, or nobody could tell who did.
    commit = """
safe() { git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c filter.ev.clean=cat "$@"; }
echo "$S" > "f-$S"; safe add -A; safe commit -q -m x
"""
    plain = world.agent(commit, "plain")
    world.configure({"evil": (world.agent(body + commit, "evil"),), "one": (plain,)})
    plan = world.graph("subtasks: [{id: a, spec: x, agent: evil}, {id: b, spec: x, agent: one, dependsOn: a}]\n")
    done = world.run("graph-run", plan, "--integrate", "--json")
    assert done.code == 5, str(done)
    assert list(world.place.glob("ran*")) == []
    shared = [item for item in done.data["attention"] if item["kind"] == "shared"]
    assert shared and "core.fsmonitor" in shared[0]["question"]
    assert done.data["integration"]["state"] == "failed"
    assert done.data["integration"]["failure"]["code"] == "SHARED_STATE_CHANGED"
    assert "refs/heads/coordinate-agents/plan/integration" not in git(world.root, "for-each-ref")


def test_moved_and_deleted_refs_of_others_are_noticed_and_restored(world: World) -> None:
    body = """
if [ "$S" = b ]; then
  git update-ref -d refs/heads/coordinate-agents/plan/a
  for ref in $(git for-each-ref --format='%(refname)' refs/coordinate-agents); do git update-ref -d "$ref"; done
fi
echo "$S" > "f-$S"; git add -A; git commit -q -m "work of $S"
"""
    world.configure({"one": (world.agent(body),)})
    plan = world.graph("subtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n")
    done = world.run("graph-run", plan, "--json")
    assert done.code == 4, str(done)
    states = {item["id"]: item for item in done.data["subtasks"]}
    assert states["a"]["state"] == "SUCCEEDED"
    assert states["b"]["state"] == "FAILED"
    assert states["b"]["failure"]["code"] == "SHARED_STATE_CHANGED"
    assert git(world.root, "rev-parse", "coordinate-agents/plan/a") == states["a"]["verifiedCommit"]


def test_work_in_the_users_checkout_is_not_the_subtasks_work(world: World) -> None:
    """EV-11."""
    body = """
R=$(git worktree list --porcelain | sed -n '1s/^worktree //p')
echo leak >> "$R/README.md"
git -C "$R" checkout -q -b hijack
git commit -q --allow-empty -m 'implements f'
"""
    world.configure({"one": (world.agent(body),)})
    done = world.run("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n"), "--json")
    assert done.code == 4, str(done)
    base = git(world.root, "rev-parse", "--short=12", "HEAD")
    failed = done.data["subtasks"][0]
    assert (failed["state"], failed["failure"]["message"]) == (
        "FAILED",
        "1 commit without any change: the files are those of the start commit;"
        f" meanwhile your checkout went from main ({base}) to hijack ({base})",
    )
    # What the agent did there is reported or left, never set back: it may be the user's.
    assert (world.root / "README.md").read_text().endswith("leak\n")
    assert git(world.root, "branch", "--show-current") == "hijack"


def test_links_that_leave_the_repository_are_told_and_not_followed(world: World) -> None:
    victim = world.place / "victim"
    victim.write_text("precious\n")
    body = f"ln -sfn {victim} out; {COMMIT}"
    world.configure({"one": (world.agent(body),)})
    plan = world.graph("subtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n")
    done = world.run("graph-run", plan, "--integrate", "--json")
    assert done.code == 0, str(done)
    assert victim.read_text() == "precious\n"
    assert any("out" in warning for warning in done.data["subtasks"][0]["evidence"]["warnings"])


def test_every_certificate_holds_until_git_or_the_log_says_otherwise(world: World) -> None:
    plan = world.graph("subtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n")
    assert world.run("graph-run", plan).code == 0
    verified = world.run("graph-verify", "plan", "--json")
    assert verified.code == 0, str(verified)
    assert [(item["subtask"], item["holds"]) for item in verified.data["certificates"]] == [("a", True), ("b", True)]
    blobs = [path for path in (world.root / ".git/coordinate-agents/blobs").rglob("*") if path.is_file()]
    changed = [path for path in blobs if b'"certificate"' in path.read_bytes() or b'"head"' in path.read_bytes()]
    assert changed
    changed[0].chmod(0o600)
    changed[0].write_bytes(changed[0].read_bytes().replace(b'"attempt":1', b'"attempt":2'))
    again = world.run("graph-verify", "plan", "--json")
    assert again.code == 4, str(again)
    assert [item["holds"] for item in again.data["certificates"]].count(False) >= 1


def test_secret_of_the_environment_appears_nowhere_in_the_record(world: World) -> None:
    secret = "sk-Zq8vXw3nB71kLm20pR"
    halves = 'printf "%s" "${SERVICE_TOKEN%????????}"; sleep 0.1; printf "%s\\n" "${SERVICE_TOKEN#????????????}"'
    body = f'{halves}\necho "$SERVICE_TOKEN"\n{COMMIT}'
    world.configure({"one": (world.agent(body),)})
    world.environment["SERVICE_TOKEN"] = secret
    done = world.run("graph-run", world.graph("subtasks: [{id: a, spec: x}]\n"), "--json")
    assert done.code == 0, str(done)
    state = world.root / ".git" / "coordinate-agents"
    holders = [path for path in state.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert holders == []
    assert secret not in done.out
    assert Path(state).stat().st_mode & 0o777 == 0o700
