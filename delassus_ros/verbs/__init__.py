"""The verbs of the command `delassus` for nodes and recordings."""
