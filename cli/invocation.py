"""One command as values, and the short way to them: a verb with `--json` is parsed here, without click.

Importing click costs as much as everything else that a read verb does. `parse` understands the plain forms only and
returns None for whatever needs more (help, an abbreviation, a mistake); click then parses the same words and words
the errors.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from coordinate_agents.graph.operations.table import Param, Verb, verb_named

# Every integer that an option takes fits the database.
MAX_DIGITS: Final = 18

_HELP: Final = ("-h", "--help")

_ROOT: Final = Param("root", "a folder of the repository (default: the current one)")


class Invocation(NamedTuple):
    """`values` holds what was given, by Request field; what was left out has the parameter's default.

    `who` is what decisions and requests record.
    """

    verb: Verb
    values: Mapping[str, Any]
    root: str | None = None
    as_json: bool = False
    who: str = "user"


def parse(argv: Sequence[str]) -> Invocation | None:
    """The invocation of a verb with `--json`, or None."""
    verb = verb_named(argv[0]) if argv else None
    if verb is None or verb.access not in ("read", "write") or "--json" not in argv:
        return None
    options = {f"--{param.name}": param for param in (*verb.params, _ROOT) if not param.positional}
    given: dict[str, Any] = {}
    words: list[str] = []
    as_json = False
    rest = list(argv[1:])
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += rest
            break
        if word == "--json":
            as_json = True
        elif word.startswith("-") and word != "-":
            name, has_value, value = word.partition("=")
            param = options.get(name)
            if param is None or not _take(given, param, value if has_value else None, rest, options):
                return None
        else:
            words.append(word)
    if not as_json or not _place(given, verb, words):
        return None
    root = given.pop("root", None) or None
    return Invocation(verb, {param.field: left_out(param) for param in verb.params} | given, root, as_json)


def left_out(param: Param) -> Any:
    """The value of a parameter that was not given: of one that is repeated none, of a flag False."""
    return () if param.multiple else bool(param.default) if param.kind == "flag" else param.default


def _take(
    given: dict[str, Any], param: Param, value: str | None, rest: list[str], options: Mapping[str, Param]
) -> bool:
    """Store one option; False when its value is missing, looks like an option, or is not plainly of its kind."""
    if param.kind == "flag":
        given[param.field] = True
        return value is None
    if value is None:
        if not rest or rest[0] == "--json" or rest[0] in _HELP or rest[0] in options:
            return False
        value = rest.pop(0)
    if param.kind == "integer":
        if not (value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS):
            return False
        given[param.field] = int(value)
        return True
    if param.kind == "duration" or param.multiple or (param.kind == "choice" and value not in param.choices):
        return False
    given[param.field] = value
    return True


def _place(given: dict[str, Any], verb: Verb, words: Sequence[str]) -> bool:
    """Give the words to the positional parameters in order; False when they do not fit, or something is missing."""
    positional = [param for param in verb.params if param.positional]
    if len(words) > len(positional) or any(param.multiple for param in positional):
        return False
    if any(param.required for param in positional[len(words) :]):
        return False
    if any(param.required and param.field not in given for param in verb.params if not param.positional):
        return False
    given.update((param.field, word) for param, word in zip(positional, words, strict=False))
    return True
