"""A small validator for the part of JSON Schema 2020-12 that our schema uses; anything else in it is an error."""

import re
from typing import Any

_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
_ANNOTATIONS = {"$schema", "$defs", "title", "description"}


def accepts(schema: Any, value: Any, root: Any = None) -> bool:
    """Whether the value is valid under the schema."""
    root = schema if root is None else root
    if isinstance(schema, bool):
        return schema
    return all(
        _KEYWORDS[keyword](argument, value, schema, root)
        for keyword, argument in schema.items()
        if keyword not in _ANNOTATIONS
    )


def _type(wanted: Any, value: Any, *_: Any) -> bool:
    names = [wanted] if isinstance(wanted, str) else wanted
    return any(isinstance(value, _TYPES[name]) and (not isinstance(value, bool) or name == "boolean") for name in names)


def _ref(target: str, value: Any, _: Any, root: Any) -> bool:
    found = root
    for part in target.removeprefix("#/").split("/"):
        found = found[part]
    return accepts(found, value, root)


def _additional(allowed: Any, value: Any, schema: Any, root: Any) -> bool:
    if not isinstance(value, dict):
        return True
    patterns = schema.get("patternProperties", {})
    rest = [
        key
        for key in value
        if key not in schema.get("properties", {}) and not any(re.search(pattern, key) for pattern in patterns)
    ]
    return all(accepts(allowed, value[key], root) for key in rest)


_KEYWORDS: dict[str, Any] = {
    "type": _type,
    "$ref": _ref,
    "const": lambda wanted, value, *_: value == wanted,
    "enum": lambda wanted, value, *_: value in wanted,
    "anyOf": lambda schemas, value, _, root: any(accepts(each, value, root) for each in schemas),
    "not": lambda schema, value, _, root: not accepts(schema, value, root),
    "pattern": lambda wanted, value, *_: not isinstance(value, str) or re.search(wanted, value) is not None,
    "minLength": lambda wanted, value, *_: not isinstance(value, str) or len(value) >= wanted,
    "maxLength": lambda wanted, value, *_: not isinstance(value, str) or len(value) <= wanted,
    "minimum": lambda wanted, value, *_: not isinstance(value, int | float) or value >= wanted,
    "maximum": lambda wanted, value, *_: not isinstance(value, int | float) or value <= wanted,
    "exclusiveMinimum": lambda wanted, value, *_: not isinstance(value, int | float) or value > wanted,
    "minItems": lambda wanted, value, *_: not isinstance(value, list) or len(value) >= wanted,
    "maxItems": lambda wanted, value, *_: not isinstance(value, list) or len(value) <= wanted,
    "items": lambda schema, value, _, root: (
        not isinstance(value, list) or all(accepts(schema, each, root) for each in value)
    ),
    "required": lambda wanted, value, *_: not isinstance(value, dict) or all(key in value for key in wanted),
    "properties": lambda known, value, _, root: (
        not isinstance(value, dict) or all(accepts(known[key], value[key], root) for key in value if key in known)
    ),
    "patternProperties": lambda known, value, _, root: (
        not isinstance(value, dict)
        or all(
            accepts(schema, value[key], root)
            for pattern, schema in known.items()
            for key in value
            if re.search(pattern, key)
        )
    ),
    "propertyNames": lambda schema, value, _, root: (
        not isinstance(value, dict) or all(accepts(schema, key, root) for key in value)
    ),
    "additionalProperties": _additional,
}
