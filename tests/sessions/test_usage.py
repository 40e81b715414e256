"""What agents print about tokens and money, as the programs really print it; what is said twice counts once."""

import pytest

from coordinate_agents.sessions.adapters import ADAPTERS
from coordinate_agents.sessions.model import Usage
from coordinate_agents.sessions.usage import find_usage

# Seen with codex 0.171, claude 2.1, opencode 1.18 and aider 0.86; what aider says of money is as its source prints it.
CODEX_JSON = """{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"All done."}}\r
{"type":"turn.completed","usage":{"input_tokens":26549,"cached_input_tokens":22272,"cache_write_input_tokens":0,\
"output_tokens":1590,"reasoning_output_tokens":1152}}\r
"""
CODEX_PLAIN = "codex\r\nAll done.\r\ntokens used\r\n28,139\r\nAll done.\r\n"
CLAUDE = """{"type":"result","subtype":"success","num_turns":2,"result":"\\"usage\\":{","session_id":"x",\
"total_cost_usd":0.0123,"usage":{"input_tokens":20,"cache_creation_input_tokens":300,"cache_read_input_tokens":4000,\
"output_tokens":10,"server_tool_use":{"web_search_requests":0}},"modelUsage":{"m":{"inputTokens":20,"costUSD":0.0123}}}
"""
STEP = """{"type":"step_finish","part":{"reason":"stop","type":"step-finish","tokens":{"total":7065,\
"input":1662,"output":8,"reasoning":15,"cache":{"write":1,"read":5380}},"cost":0.002}}
"""
GEMINI_STREAM = """{"type":"message","role":"assistant","content":"\\"stats\\":{\\"input_tokens\\":7}","delta":true}\r
{"type":"result","status":"success","stats":{"total_tokens":130,"input_tokens":120,"output_tokens":10,"cached":40,\
"input":80,"duration_ms":1399,"tool_calls":1,"models":{"mock":{"total_tokens":130,"input_tokens":120}}}}\r
"""
GEMINI = """{\r
  "response": "Done.",\r
  "stats": {\r
    "models": {\r
      "one": {\r
        "tokens": {\r
          "input": 20,\r
          "prompt": 60,\r
          "candidates": 10,\r
          "total": 75,\r
          "cached": 40,\r
          "thoughts": 5,\r
          "tool": 0\r
        },\r
        "roles": {\r
          "main": {\r
            "tokens": {\r
              "prompt": 60,\r
              "candidates": 10\r
            }\r
          }\r
        }\r
      },\r
      "two": {\r
        "tokens": {\r
          "prompt": 3,\r
          "candidates": 1,\r
          "cached": 0,\r
          "thoughts": 0\r
        }\r
      }\r
    }\r
  }\r
}
"""
AIDER = "Tokens: 2.3k sent, 1.1k cache write, 500 cache hit, 120 received. Cost: $0.01 message, $0.01 session.\n"


@pytest.mark.parametrize(
    ("name", "text", "usage"),
    [
        ("codex", CODEX_JSON, Usage(26549, 22272, 1590, is_of_conversation=True)),
        ("codex", CODEX_JSON + CODEX_JSON, Usage(26549, 22272, 1590, is_of_conversation=True)),
        ("codex", CODEX_PLAIN, Usage(total_tokens=28139, is_of_conversation=True)),
        ("claude", CLAUDE, Usage(4320, 4000, 10, cost_usd=0.0123)),
        ("opencode", STEP + '{"type":"step_start"}\n' + STEP, Usage(14086, 10760, 46, cost_usd=0.004)),
        ("gemini", GEMINI_STREAM, Usage(120, 40, 10)),
        ("gemini", GEMINI, Usage(63, 40, 16)),
        ("aider", AIDER + "\n" + AIDER, Usage(4600, 1000, 240, cost_usd=0.02)),
        ("aider", AIDER.replace(" Cost", "\nCost"), Usage(2300, 500, 120, cost_usd=0.01)),
        ("aider", "Tokens: 812 sent, 90 received.\n", Usage(812, None, 90)),
        ("claude", "All done; the usage was fine.\n", None),
        ("generic", CODEX_JSON, None),
        ("opencode", '{"type":"step_finish","part":{"tokens":{"input":99999999999999999999}}}\n', None),
    ],
)
def test_numbers_are_found_where_the_agent_prints_them(name: str, text: str, usage: Usage | None) -> None:
    assert find_usage(text, ADAPTERS[name].usage) == usage
