"""Frozen dataclasses to plain JSON values and back, for events and cache rows.

Only what such values hold: None, bool, int, float, str, tuples, read-only mappings with text keys, and other
dataclasses. Fields at their default are left out, so rows stay short and a new field needs no migration. Unknown
fields are ignored when reading: a row of a newer version is refused by the schema version, not here.
"""

import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

_NO_DEFAULT = object()
_PLAIN = frozenset([str, int, float, bool, type(None)])


def to_plain(value: Any) -> Any:
    """The JSON value of a dataclass (without fields at their default), tuple, mapping or scalar."""
    if value.__class__ in _PLAIN:
        return value
    if hasattr(value, "__dataclass_fields__"):
        return _dataclass_to_plain(value)
    if isinstance(value, tuple | list | frozenset):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    raise TypeError(f"cannot store {type(value).__name__}")


def _dataclass_to_plain(value: Any) -> dict[str, Any]:
    # Of every run whenever it changes, some dozens of fields: most are at their default, the others nearly all plain.
    plain = {}
    for name, default in _defaults(cast("Hashable", type(value))):
        item = getattr(value, name)
        if item is not default and item != default:
            plain[name] = item if item.__class__ in _PLAIN else to_plain(item)
    return plain


@cache
def _defaults(cls: Hashable) -> tuple[tuple[str, Any], ...]:
    found = []
    for item in fields(cast("Any", cls)):
        default = item.default
        if default is MISSING and item.default_factory is not MISSING:
            default = item.default_factory()
        found.append((item.name, _NO_DEFAULT if default is MISSING else default))
    return tuple(found)


def from_plain(cls: type[T], plain: Mapping[str, Any]) -> T:
    """The value that `to_plain` wrote. Raises: TypeError when a required field is missing."""
    readers = _readers(cast("Hashable", cls))
    return cls(**{name: readers[name](item) for name, item in plain.items() if name in readers})


@cache
def _readers(cls: Hashable) -> Mapping[str, Callable[[Any], Any]]:
    hints = get_type_hints(cls)
    return {item.name: _reader(hints[item.name]) for item in fields(cast("Any", cls))}


def _reader(hint: Any) -> Callable[[Any], Any]:
    if isinstance(hint, NewType):
        return _same
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        kinds = [item for item in get_args(hint) if item is not type(None)]
        inner = _reader(kinds[0]) if len(kinds) == 1 else _same
        return lambda item: None if item is None else inner(item)
    if origin is tuple:
        args = get_args(hint)
        if len(args) == 2 and args[1] is Ellipsis:
            each = _reader(args[0])
            return lambda item: tuple(each(part) for part in item)
        parts = [_reader(part) for part in args]
        return lambda item: tuple(read(part) for read, part in zip(parts, item, strict=True))
    if isinstance(hint, type) and is_dataclass(hint):
        return lambda item: from_plain(hint, item)
    return _same


def _same(item: Any) -> Any:
    return item
