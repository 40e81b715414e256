"""A report as one HTML page that needs nothing else: no script, no picture to load, no style but its own.

The template lays out; nothing is computed there. Its text is escaped by jinja2, which is an extra of the installation,
and a policy in the page forbids browsers everything but the page's own style, which it names by its digest.
"""

import base64
import hashlib
import importlib.util
from pathlib import Path
from typing import Final

from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.report_drawing import ROW_HEIGHT, chart, picture
from coordinate_agents.graph.report_model import Report
from coordinate_agents.graph.report_words import length, outcome, tick, tokens
from coordinate_agents.graph.reporting import PHASES

_TEMPLATES: Final = Path(__file__).with_name("templates")
INSTALL: Final = "pip install 'coordinate-agents[report]'"


def is_available() -> bool:
    """Whether the extra is installed."""
    return importlib.util.find_spec("jinja2") is not None


def html(report: Report) -> str:
    """The page. Raises: UNSUPPORTED_CAPABILITY without the extra."""
    if not is_available():
        raise GraphError(
            "UNSUPPORTED_CAPABILITY",
            "A report as HTML needs jinja2, which is not installed.",
            kept="everything as it is; nothing was written",
            next=f"{INSTALL}, or --format markdown",
        )
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"length": length, "tick": tick, "tokens": tokens, "outcome": outcome}
    style = (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    template = environment.from_string((_TEMPLATES / "report.html.jinja").read_text(encoding="utf-8"))
    page: str = template.render(
        report=report,
        picture=picture(report),
        chart=chart(report),
        row_height=ROW_HEIGHT,
        phases=PHASES,
        style=style,
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
    )
    return page
