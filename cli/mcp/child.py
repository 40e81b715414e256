"""The process that carries one call out when it may change something or take long: one request in, one document out.

    python -P -m coordinate_agents.cli.mcp.child DESCRIPTOR

It runs in a session of its own and outlives the server: what was begun is finished, whoever goes away. The request is
JSON on the descriptor, the verb's own standard input is descriptor 0, and the answer is the only thing that is ever
written to descriptor 1.
"""

import json
import os
import sys
from typing import Any

from coordinate_agents.cli.execute import answer
from coordinate_agents.cli.invocation import Invocation
from coordinate_agents.graph.operations.table import verb_named


def request_bytes(invocation: Invocation) -> bytes:
    """What `main` reads."""
    return json.dumps(
        {
            "verb": invocation.verb.name,
            "values": dict(invocation.values),
            "root": invocation.root,
            "who": invocation.who,
        }
    ).encode()


def main() -> None:
    with os.fdopen(int(sys.argv[1]), "rb") as source:
        request: dict[str, Any] = json.load(source)
    out = os.dup(1)
    os.set_inheritable(out, False)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    verb = verb_named(request["verb"])
    assert verb is not None
    values = {
        param.field: tuple(value) if param.multiple else value
        for param in verb.params
        for value in [request["values"][param.field]]
    }
    document, code = answer(Invocation(verb, values, request["root"], True, request["who"]))
    with os.fdopen(out, "wb") as file:
        file.write(json.dumps({"document": document, "code": code}).encode())


if __name__ == "__main__":
    main()
