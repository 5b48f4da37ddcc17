"""The procedures: settings, planning, execution, verification, evolution, and the MCP surface."""
