"""Machine code kept on disk."""
