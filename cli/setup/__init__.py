"""Verbs about this machine and its configuration: one file per verb, like `graph/operations`."""
