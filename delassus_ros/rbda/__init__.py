"""Rigid-body dynamics over scalars, what algorithms share: trees, propagation, loops, outputs."""
