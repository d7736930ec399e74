"""Finding memories and handing them to a model: search, links, groups that say the same, prompt blocks. The derived
structures underneath are `index`.
"""
