"""A graph as lines: everything once, below what it needs."""

from coordinate_agents.cli.watch.tree import MAX_GUIDE, tree


def _drawn(needs: dict[str, list[str]]) -> list[str]:
    return [f"{node.guide}{node.id}{' +' if node.also else ''}{','.join(node.also)}" for node in tree(needs)]


def test_a_subtask_stands_below_its_deepest_prerequisite_and_the_others_are_named() -> None:
    needs: dict[str, list[str]] = {
        "a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "deep": ["d", "z"], "z": [], "y": ["z", "a"],
    }  # fmt: skip
    assert _drawn(needs) == [
        "a",
        "├ b",
        "│ └ d +c",
        "│   └ deep +z",
        "├ c",
        "└ y +z",
        "z",
    ]


def test_a_long_chain_stays_within_the_screen_and_needs_no_recursion() -> None:
    names = [f"s{number:04}" for number in range(3000)]
    needs: dict[str, list[str]] = {name: names[at - 1 : at] if at else [] for at, name in enumerate(names)}
    nodes = tree(needs)
    assert [node.id for node in nodes] == names
    assert max(len(node.guide) for node in nodes) == MAX_GUIDE
    assert nodes[-1].guide.startswith("…")
    assert nodes[-1].guide.endswith("└ ")


def test_a_graph_without_a_subtask_has_no_line() -> None:
    assert tree({}) == ()
