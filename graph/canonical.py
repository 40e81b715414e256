"""Canonical JSON of frozen dataclasses, and back with every type checked: for texts whose digest means something.

Unlike `codec`, nothing is left out, names are camelCase, unknown, missing and mistyped fields are refused, and there
are no floats: equal values give equal text on every machine. Fields may be text, whole numbers, booleans, None,
literals, dataclasses and tuples of these.
"""

import json
import types
from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def text_of(value: Any) -> str:
    """The one JSON text of a dataclass: sorted keys, no spaces, ASCII. Raises: TypeError for a value without one."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def value_of(cls: type[T], text: str) -> T:
    """The dataclass that the text holds. Raises: ValueError, TypeError, RecursionError for any other text."""
    value: T = _read(cls, json.loads(text))
    if text_of(value) != text:
        raise ValueError("not the canonical text of what it says")
    return value


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool) or type(value) is int:
        return value
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(getattr(value, field)) for name, field in _names(cast("Hashable", type(value)))}
    raise TypeError(f"{value!r} has no canonical text")


def _read(hint: Any, raw: Any) -> Any:
    if isinstance(hint, NewType):
        return _read(hint.__supertype__, raw)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _read_union(args, raw)
    if origin is Literal:
        if raw in args and isinstance(raw, str):
            return raw
    elif origin is tuple:
        if isinstance(raw, list):
            return tuple(_read(args[0], each) for each in raw)
    elif is_dataclass(hint):
        return _read_dataclass(cast("type[Any]", hint), raw)
    elif type(raw) is hint:  # exactly: True is no number here, and 1.0 is none
        return raw
    raise TypeError(f"{raw!r:.80} where {getattr(hint, '__name__', hint)} is expected")


def _read_union(args: tuple[Any, ...], raw: Any) -> Any:
    for each in args:
        try:
            return _read(each, raw)
        except TypeError:
            continue
    raise TypeError(f"{raw!r:.80} where one of {len(args)} types is expected")


def _read_dataclass(cls: type[Any], raw: Any) -> Any:
    wanted = _hints(cast("Hashable", cls))
    if not isinstance(raw, dict) or raw.keys() != wanted.keys():
        raise TypeError(f"{raw!r:.80} where the fields of {cls.__name__} are expected")
    return cls(**{name: _read(hint, raw[key]) for key, (name, hint) in wanted.items()})


@cache
def _names(cls: Hashable) -> tuple[tuple[str, str], ...]:
    return tuple((_camel(each.name), each.name) for each in fields(cast("Any", cls)))


@cache
def _hints(cls: Hashable) -> dict[str, tuple[str, Any]]:
    hints = get_type_hints(cls)
    return {_camel(each.name): (each.name, hints[each.name]) for each in fields(cast("Any", cls))}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
