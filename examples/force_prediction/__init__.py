"""Contact forces from a Delassus matrix: see docs/examples/force_prediction.md."""
