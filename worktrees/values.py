"""`value_class`: `dataclass(frozen=True, slots=True)` for a program that declares hundreds of them and starts often.

For each class `dataclass` compiles six methods, half a millisecond, two fifths of the start of a run. Here five of them
are shared by all values, and the constructor is compiled when the first value of its class is made. Everything else is
a dataclass: `fields`, `replace`, `asdict`, matching, defaults, `__post_init__`.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, Final, TypeVar, cast, dataclass_transform

_T = TypeVar("_T")

_FACTORY: Final = object()


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(cls: type[_T]) -> type[_T]:
    """The class as a frozen dataclass with slots. Raises: TypeError for a field that its constructor does not take."""
    # `dataclass` would make a text of the signature.
    cls.__doc__ = cls.__doc__ or ""
    for name, method in _SHARED.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    found = fields(cast("Any", made))
    if any(not each.init or each.kw_only or not each.compare or not each.repr for each in found):
        raise TypeError(f"{cls.__qualname__}: a field of a value is an argument of its constructor")
    names = tuple(each.name for each in found)
    made.__value__ = _of(names)  # type: ignore[attr-defined]
    return made


def _of(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """What two values are compared by."""
    return attrgetter(*names) if names else _Nothing()


class _Nothing:
    """As an attrgetter no method of the class it is set on: a function would be bound."""

    def __call__(self, _: object) -> tuple[()]:
        return ()


def _first_init(self: Any, /, *args: Any, **kwargs: Any) -> None:
    """The constructor until there is one."""
    owner: Any = next((each for each in type(self).__mro__ if each.__dict__.get("__init__") is _first_init), None)
    if owner is None:  # another thread compiled it since this one came here
        type(self).__init__(self, *args, **kwargs)
        return
    owner.__init__ = made = _constructor(owner)
    made(self, *args, **kwargs)


def _constructor(owner: Any) -> Callable[..., None]:
    known: dict[str, Any] = {"_FACTORY": _FACTORY}
    parameters, lines = ["self"], []
    for each in fields(owner):
        known[f"_set_{each.name}"] = getattr(owner, each.name).__set__
        default, given = _default(each, known)
        parameters.append(f"{each.name}{default}")
        lines.append(f" _set_{each.name}(self, {given})")
    if hasattr(owner, "__post_init__"):
        lines.append(" self.__post_init__()")
    # Names of fields only: nothing of what a program is given.
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"]), known)  # noqa: S102
    made = cast("Callable[..., None]", known["__init__"])
    made.__qualname__ = f"{owner.__qualname__}.__init__"
    return made


def _default(each: Field[Any], known: dict[str, Any]) -> tuple[str, str]:
    """What stands behind a parameter, and what its field is set to."""
    name = each.name
    if each.default_factory is not MISSING:
        known[f"_factory_{name}"] = each.default_factory
        return "=_FACTORY", f"_factory_{name}() if {name} is _FACTORY else {name}"
    if each.default is not MISSING:
        known[f"_default_{name}"] = each.default
        return f"=_default_{name}", name
    return "", name


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    key = self.__value__
    return key(self) == key(other)


def _hashed(self: Any) -> int:
    return hash(self.__value__(self))


def _shown(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self))
    return f"{type(self).__qualname__}({shown})"


def _refuse_set(self: Any, name: str, _: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, item in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, item)


_SHARED: Final = {
    "__init__": _first_init,
    "__eq__": _equal,
    "__hash__": _hashed,
    "__repr__": _shown,
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
    "__getstate__": _state,
    "__setstate__": _set_state,
}
