"""Conditioning of the matrix, damping near singularities, and structural ranks."""
