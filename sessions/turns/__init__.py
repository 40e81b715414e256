"""The turns of Sessions: one coordinator between whoever wants work done and the drivers that talk to agents."""
