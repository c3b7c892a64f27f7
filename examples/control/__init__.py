"""What the controllers of these examples share: their node, and a run with a verdict."""
