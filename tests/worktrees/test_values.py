"""A value is what `dataclass(frozen=True, slots=True)` makes of the same class, in everything that is asked of it."""

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any

import pytest

from coordinate_agents.worktrees.values import value_class


@value_class
class Value:
    a: int
    b: str = "b"


@value_class
class ChildValue(Value):
    c: tuple[int, ...] = ()
    d: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError(f"a is {self.a}")


@dataclass(frozen=True, slots=True)
class Plain:
    a: int
    b: str = "b"


@dataclass(frozen=True, slots=True)
class ChildPlain(Plain):
    c: tuple[int, ...] = ()
    d: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError(f"a is {self.a}")


@value_class
class Empty:
    """Has none."""


def _matched(item: Any) -> object:
    match item:
        case ChildValue(a, b, c) | ChildPlain(a, b, c):
            return a, b, c
    return None


BOTH = pytest.mark.parametrize("kind", [ChildValue, ChildPlain])


@BOTH
def test_construction_by_place_by_name_and_by_default(kind: Any) -> None:
    first = kind(1, c=(2,))
    assert asdict(first) == {"a": 1, "b": "b", "c": (2,), "d": {}}
    assert first.d is not kind(1).d
    assert (first == kind(1, "b", (2,), {}), first == kind(1), first == Value(1)) == (True, False, False)
    assert repr(first) == f"{kind.__name__}(a=1, b='b', c=(2,), d={{}})"
    assert asdict(replace(first, b="x")) == {"a": 1, "b": "x", "c": (2,), "d": {}}
    assert _matched(first) == (1, "b", (2,))
    assert [each.name for each in fields(kind)] == ["a", "b", "c", "d"]


@BOTH
@pytest.mark.parametrize("given", [((), {}), ((1, 2, 3, 4, 5), {}), ((1,), {"a": 1}), ((1,), {"e": 1})])
def test_arguments_that_do_not_fit_are_refused(kind: Any, given: tuple[Any, Any]) -> None:
    with pytest.raises(TypeError, match=rf"{kind.__name__}\.__init__\(\)"):
        kind(*given[0], **given[1])


@BOTH
def test_what_comes_after_the_construction_may_refuse(kind: Any) -> None:
    with pytest.raises(ValueError, match="a is -1"):
        kind(-1)


@BOTH
def test_nothing_can_be_set_deleted_or_added(kind: Any) -> None:
    item = kind(1)
    for change in (lambda: setattr(item, "a", 2), lambda: delattr(item, "a"), lambda: setattr(item, "e", 2)):
        with pytest.raises((FrozenInstanceError, TypeError)):
            change()
    assert item.a == 1
    assert not hasattr(item, "__dict__")


@pytest.mark.parametrize("kind", [Value, Plain])
def test_equal_values_are_one_in_a_set_and_copies_are_equal(kind: Any) -> None:
    item = kind(1, "x")
    assert {item, kind(1, "x"), kind(2)} == {kind(2), item}
    assert copy.deepcopy(item) == pickle.loads(pickle.dumps(item)) == item


def test_value_without_fields_equals_any_of_its_class() -> None:
    assert (Empty(), hash(Empty()), repr(Empty())) == (Empty(), hash(Empty()), "Empty()")


@pytest.mark.parametrize("given", [field(init=False), field(kw_only=True), field(compare=False), field(repr=False)])
def test_field_that_the_shared_methods_would_get_wrong_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="Odd"):
        value_class(type("Odd", (), {"__annotations__": {"a": int}, "a": given}))


def test_a_thread_that_came_while_another_compiled_the_constructor_makes_its_value() -> None:
    @value_class
    class Late:
        number: int
        name: str = "x"

    late = object.__new__(Late)
    first = Late.__init__  # what a thread has in hand that is stopped here
    assert Late(1) == Late(1)
    first(late, 2, name="y")
    assert late == Late(2, "y")
