"""Contact forces from a Delassus matrix: see README.md beside this folder."""
