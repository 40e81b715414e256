"""Carries one invocation out: opens the runtime, calls the operation, writes what it answers.

Joins the parts; what a verb decides is its operation's, the words are `render`'s.
"""

import contextlib
import gc
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from coordinate_agents.cli import output
from coordinate_agents.cli.invocation import Invocation
from coordinate_agents.graph.errors import EXIT_DONE, GraphError
from coordinate_agents.graph.operations.table import Result


def execute(invocation: Invocation, argv: Sequence[str]) -> int:
    """Run the verb; returns the exit code. Never raises: what goes wrong is written and becomes a code."""
    code = EXIT_DONE
    try:
        with _runtime(invocation) as runtime:
            with output.stdout_reserved():
                result = _call(invocation, runtime)
            code = result.exit_code
            _write(invocation, result)
            if invocation.verb.group == "set up":
                code = _asked(invocation, runtime, result)
    except output.ReaderGone:
        return code
    except BaseException as error:
        from coordinate_agents.cli import failures  # a call that succeeds has no use for it

        return report(failures.as_graph_error(error, argv), command=invocation.verb.name, as_json=invocation.as_json)
    return code


def answer(invocation: Invocation) -> tuple[dict[str, Any], int]:
    """The document that `--json` prints, and the exit code; nothing is written. Never raises."""
    name = invocation.verb.name
    try:
        with _runtime(invocation) as runtime:
            result = _call(invocation, runtime)
    except BaseException as error:
        from coordinate_agents.cli import failures

        failed = failures.as_graph_error(error, (name, *(str(value) for value in invocation.values.values())))
        return _failed_document(failed, name), failed.exit_code
    return _document(name, result), result.exit_code


def report(error: GraphError, *, command: str | None, as_json: bool) -> int:
    """Write the error, as the one JSON document or as lines on stderr. Returns its exit code."""
    from coordinate_agents.cli import failures

    error = failures.with_all_sentences(error, command=command)
    if not as_json or error.code == "OUTPUT_FAILED":
        output.complain(failures.to_lines(error))
        return error.exit_code
    try:
        output.write_document(_failed_document(error, command))
    except output.ReaderGone:
        pass
    except GraphError as failed:
        output.complain([*failures.to_lines(error), *failures.to_lines(failed)])
    return error.exit_code


@contextlib.contextmanager
def _runtime(invocation: Invocation) -> Iterator[Any]:
    """The runtime that the verb's access asks for, closed at the end; None where it needs none."""
    if invocation.verb.access == "none":
        yield None
        return
    if invocation.verb.access == "write":
        from coordinate_agents.cli.custody import require_outside

        require_outside(invocation)
    from coordinate_agents.cli.wiring import open_runtime

    runtime = open_runtime(invocation)
    try:
        yield runtime
    finally:
        if runtime is not None:
            runtime.close()


def _call(invocation: Invocation, runtime: Any) -> Result:
    module = import_module(invocation.verb.module)
    if not invocation.verb.is_quick:
        gc.freeze()
        gc.enable()  # off since the start: what is loaded is no garbage; a quick verb ends before there is any
    result: Result = module.execute(runtime, _request(module.Request, invocation))
    return result


def _asked(invocation: Invocation, runtime: Any, result: Result) -> int:
    """The exit code after the question that the result ends with, where there is one."""
    from coordinate_agents.cli import confirm

    if not confirm.asks(invocation, result):
        return result.exit_code
    agreed = confirm.answer(invocation, result)
    if agreed is None:
        return result.exit_code
    again = _call(agreed, runtime)
    _write(agreed, again)
    return again.exit_code


def _request(request_type: Any, invocation: Invocation) -> Any:
    """The Request of the given values. What this verb's operation does not know yet is refused by name, not dropped."""
    known = set(request_type.__annotations__)
    params = {param.field: param for param in invocation.verb.params}
    for name, value in invocation.values.items():
        if name not in known and value not in (None, False, (), params[name].default):
            raise GraphError("UNSUPPORTED_CAPABILITY", f"{invocation.verb.name} --{params[name].name}: not yet.")
    return request_type(**{name: value for name, value in invocation.values.items() if name in known})


def _write(invocation: Invocation, result: Result) -> None:
    if result.stream is not None:
        _write_stream(invocation, result.stream)
    elif invocation.as_json:
        output.write_document(_document(invocation.verb.name, result))
    else:
        output.write_lines(_lines(invocation, result.data))


def _document(command: str, result: Result) -> dict[str, Any]:
    return {"ok": True, "command": command, "data": result.data}


def _failed_document(error: GraphError, command: str | None) -> dict[str, Any]:
    from coordinate_agents.cli import failures

    error = failures.with_all_sentences(error, command=command)
    return {"ok": False, "command": command, "error": failures.to_json(error)}


def _write_stream(invocation: Invocation, stream: Iterator[dict[str, Any]]) -> None:
    """Write object after object. Ctrl-C is how a person ends it: nothing went wrong then."""
    gc.enable()  # it may go on for days
    try:
        for item in stream:
            if invocation.as_json:
                output.write_line(item)
            else:
                output.write_lines(_lines(invocation, item), ends_line=_ends_line(item))
    except KeyboardInterrupt:
        return


def _ends_line(item: dict[str, Any]) -> bool:
    """False for a piece of output that stops within a line: what comes next goes on there."""
    text = item.get("output")
    return not isinstance(text, str) or text.endswith("\n") or bool(item.get("ended"))


def _lines(invocation: Invocation, data: dict[str, Any]) -> Sequence[str]:
    from coordinate_agents.cli.render import render

    return render(invocation.verb.name, data)
