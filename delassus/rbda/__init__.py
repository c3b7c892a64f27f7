"""Rigid-body dynamics over scalars, common to all algorithms: trees, loops, outputs."""
