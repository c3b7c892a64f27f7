"""Machine code in memory and its calls."""
