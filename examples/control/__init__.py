"""Common parts of the controllers of these examples: their node, and a run with a verdict."""
