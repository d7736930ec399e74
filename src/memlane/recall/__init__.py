"""Finding memories and preparing them for a model: search, links, groups of similar memories, prompt blocks.

Everything here reads the room `index`.
"""
