"""What an algorithm leaves when it runs on symbols: expressions, steps as calls, counts."""
