"""What can be called: tools, their schemas and effects, and the servers that offer them."""
