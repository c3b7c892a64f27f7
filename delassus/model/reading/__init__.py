"""Readers of robots: URDF and URDF+ in XML, side files in YAML, models of other libraries."""
