"""What a graph's id looks like, for those who must not pay for the whole model. Pure."""

import re
from typing import Final

GRAPH_ID_PATTERN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,127}")
