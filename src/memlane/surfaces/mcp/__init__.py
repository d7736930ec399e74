"""The MCP server: the bank's verbs as tools, its memories as resources, and three prompts.

    server           the SDK's server with all of this registered on it
    stdio, http      the two transports
    auth, jwts       who may use the server over HTTP, and what for; tokens that a company's login has signed
    shared_bank      the one bank that all calls share, opened on first use
    tools            what a tool is: a function, its schemas and the check of its arguments
    toolsets         which tools a server has: the default ones, and opt-in sets for the other lanes
    remember_recall  default tools: remember and recall, over all lanes
    notes            default tools: seed 003's ten
    vault, topics, layers, records, knowledge_graph  one opt-in toolset each
    resources        memory://index and memory://memory/{id}
    prompts          recall, remember, wrap-up; completion of their arguments

Only `memlane mcp` imports these modules: importing the SDK alone takes longer than any other command takes to run.
"""
