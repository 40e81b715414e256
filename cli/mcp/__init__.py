"""The MCP server: every verb of the table as a tool, over standard input and output, for one repository."""
