"""The Agent Client Protocol, wire version 1, without any input or output: bytes in, events out; calls in, bytes out.

Runs in hosts: stdlib only. `framing` splits what an agent writes, `peer` is our side of the conversation, `permissions`
decides what may be decided without a person, `words` turns an agent's updates into text for people.
Source: agentclientprotocol.com, schema version 1.
"""
