"""The click commands, made from the verb table. Decides nothing: words in, an `Invocation` out.

A command and its parameters are built when it is chosen; the group knows names and summaries only.
"""

import difflib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import click

from coordinate_agents.cli import failures, output
from coordinate_agents.cli.completing import completer
from coordinate_agents.cli.execute import execute, report
from coordinate_agents.cli.invocation import MAX_DIGITS, Invocation
from coordinate_agents.graph import durations
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.table import VERBS, Param, Verb, verb_named

PROGRAM: Final = "coordinate-agents"
_GROUPS: Final = {
    "begin": "Begin",
    "run": "Run",
    "look": "Look (these change nothing)",
    "change": "Change",
    "task": "Single Tasks",
    "session": "Sessions",
    "set up": "Set up",
}
_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

Run = Callable[[Invocation], int]


def run_words(argv: Sequence[str]) -> int:
    """Parse the words and carry them out; returns the exit code. Usage errors are reported like every other one."""
    group = VerbGroup(lambda invocation: execute(invocation, argv))
    try:
        with output.writing():
            code = group.main(list(argv) or ["--help"], prog_name=PROGRAM, standalone_mode=False)
    except output.ReaderGone:
        return 0
    except click.Abort:
        return _failed(failures.as_graph_error(KeyboardInterrupt(), argv), None, argv)
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        command = context.info_name if context is not None and context.parent is not None else None
        verb = verb_named(command or "")
        return _failed(_usage_error(error, verb), verb, argv)
    except Exception as error:
        return _failed(failures.as_graph_error(error, argv), None, argv)
    return code if isinstance(code, int) else 0


def _usage_error(error: click.ClickException, verb: Verb | None) -> GraphError:
    message = error.format_message()
    return GraphError(
        "INVALID_USAGE",
        message if message.endswith((".", "?")) else f"{message}.",
        kept="everything as it is",
        next=f"{PROGRAM} {verb.name} --help" if verb else f"{PROGRAM} --help",
    )


def _failed(error: GraphError, verb: Verb | None, argv: Sequence[str]) -> int:
    options = argv[: argv.index("--")] if "--" in argv else argv
    return report(error, command=verb.name if verb else None, as_json="--json" in options)


class Duration(click.ParamType):  # type: ignore[type-arg]
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, float):
            return value
        found = durations.seconds(value)
        if found is None:
            self.fail(f"{value!r} is not a duration; write 90s, 45m, 2h or seconds, at most a year", param, ctx)
        return found


class VerbGroup(click.Group):
    """Every verb under its full name; the prefix `graph-` may be left out."""

    def __init__(self, run: Run) -> None:
        super().__init__(
            PROGRAM,
            params=[*_common_options(), _version_option()],
            help="Runs a graph of coding subtasks over one git repository: a worktree and an agent per subtask, "
            "progress only on verified evidence. The prefix graph- may be left out: run is graph-run.",
            context_settings=dict(_SETTINGS),
        )
        self._run = run

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [verb.name for verb in VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = verb_named(cmd_name)
        return None if verb is None else _command(verb, self._run)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and verb_named(args[0]) is None and not args[0].startswith("-"):
            ctx.fail(_unknown_verb(args[0]))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group, heading in _GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(verb.name, verb.summary) for verb in VERBS if verb.group == group])


def _unknown_verb(word: str) -> str:
    names = [name for verb in VERBS for name in (verb.name, verb.short_name)]
    near = difflib.get_close_matches(word, names, n=3, cutoff=0.6)
    full = dict.fromkeys(verb.name for name in near if (verb := verb_named(name)))
    hint = f"did you mean {' or '.join(full)}?" if full else f"{PROGRAM} --help lists the verbs."
    return f"there is no verb {word!r}; {hint}"


def _command(verb: Verb, run: Run) -> click.Command:
    @click.pass_context
    def callback(ctx: click.Context, /, **given: Any) -> int:
        above = ctx.parent.params if ctx.parent else {}
        root = given.pop("root") or above.get("root")
        as_json = given.pop("json") or bool(above.get("json"))
        return run(Invocation(verb, given, root, as_json))

    params = [*(_parameter(param) for param in verb.params), *_common_options()]
    summary = f"{verb.summary[0].upper()}{verb.summary[1:]}."
    positional = [param for param in verb.params if param.positional]
    if positional:
        summary += "\n\n\b\n" + "\n".join(f"{param.name.upper()}: {param.help}" for param in positional)
    return _Command(verb.name, callback=callback, params=params, help=summary, context_settings=dict(_SETTINGS))


class _Command(click.Command):
    """An option that takes a value never takes another option for it: `--spec --json` would run "--json" as a task."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        names = {name for option in options for name in option.opts}
        takers = {name for option in options if not (option.is_flag or option.count) for name in option.opts}
        before = args[: args.index("--")] if "--" in args else args
        for word, following in pairwise(before):
            if word in takers and following in names:
                ctx.fail(f"option {word} needs a value, and {following} is an option; {word}={following} would give it")
        return super().parse_args(ctx, args)


def _parameter(param: Param) -> click.Parameter:
    if param.positional:
        return click.Argument(
            [param.field],
            type=_type(param),
            required=param.required,
            nargs=-1 if param.multiple else 1,
            shell_complete=completer(param),
            metavar=param.name.upper() if param.required else f"[{param.name.upper()}]",
        )
    return click.Option(
        [f"--{param.name}", param.field],
        type=_type(param),
        # Not False: click takes that for an option whose value may be left out, and so never one that begins with "-".
        is_flag=True if param.kind == "flag" else None,
        required=param.required,
        multiple=param.multiple,
        **_default(param),
        help=param.help,
        shell_complete=completer(param),
    )


def _default(param: Param) -> dict[str, Any]:
    """None is not given as a default: click 8.3 takes it for the value of a required option that was left out."""
    if param.kind == "flag":
        return {"default": bool(param.default)}
    return {} if param.default is None else {"default": param.default}


def _type(param: Param) -> Any:
    match param.kind:
        case "flag":
            return None
        case "integer":
            return click.IntRange(0, 10**MAX_DIGITS - 1)
        case "duration":
            return Duration()
        case "choice":
            return click.Choice(param.choices)
        case _:
            return click.STRING


def _common_options() -> Sequence[click.Parameter]:
    return (
        click.Option(["--root"], metavar="DIR", help="A folder of the repository (default: the current one)."),
        click.Option(["--json"], is_flag=True, help="Print exactly one JSON document on stdout."),
    )


def _version_option() -> click.Option:
    def show(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            from importlib.metadata import version

            click.echo(f"{PROGRAM} {version(PROGRAM)}")
            ctx.exit()

    return click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=show)
