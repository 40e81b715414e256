"""Any program: the configuration names it and its arguments; nothing is assumed about it.

Interactive, it is one that reads lines: a prompt is typed as it is, with one Enter behind it.
"""

from coordinate_agents.sessions.adapters.base import YES_NO, Acp, Adapter, Interactive
from coordinate_agents.sessions.model import InputRules, QuestionRule

# Words by which programs of every kind ask for trust or a login.
_QUESTIONS = (
    QuestionRule("trust", r"(?i:do you trust (?:this|the)\b)[^\n]{0,200}\s*\Z"),
    QuestionRule("login", r"(?i:password|passphrase|username)[^\n]{0,80}:\s*\Z"),
    YES_NO,
)

ADAPTER = Adapter(
    name="generic",
    questions=_QUESTIONS,
    acp=Acp(),
    interactive=Interactive(input=InputRules(paste="auto", pause_s=0.5, questions=_QUESTIONS, silent_s=2.0)),
)
