"""What is wrong with a server: rules, findings from its listing and its calls, and the report's files."""
