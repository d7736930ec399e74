"""The MCP server: the bank's verbs as tools, its memories as resources, and three prompts.

    shared      the one bank that all calls share
    tools       what a tool is: its schemas, its arguments checked
    notes       seed 003's ten tools
    whole       remember and recall, over all lanes
    toolsets    which tools there are: the default ones, and opt-in sets for the other lanes
    resources   memory://index and memory://memory/{id}
    prompts     recall, remember, wrap-up; completion
    server      all of it on the SDK's server
    stdio, http the two ways to be reached

Only `memlane mcp` imports these modules: the SDK alone takes longer to import than any other command takes to run.
"""
