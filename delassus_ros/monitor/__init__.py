"""Watching: are the matrices of a node those of a simulator, or of another node."""
