"""The ways in for people, agents and other programs: command line, MCP server, hooks, and the clients they connect.

They parse, make one call on the bank, and print. How a memory is stored or found is not their business.
"""
