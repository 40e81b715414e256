"""How patient this process is with programs that stay: a factor on the silences that it waits for.

A test whose agents do nothing between two lines need not wait as long as a person's program may draw.
``COORDINATE_AGENTS_PACE=0.2`` makes each such silence a fifth as long. Nothing that bounds or ends work depends on it.
"""

import os
from typing import Final

PACE_VARIABLE: Final = "COORDINATE_AGENTS_PACE"


def _pace(text: str) -> float:
    """Text that is no number above 0 and up to 1 is none."""
    try:
        value = float(text)
    except ValueError:
        return 1.0
    return value if 0.0 < value <= 1.0 else 1.0


PACE: Final = _pace(os.environ.get(PACE_VARIABLE, ""))
