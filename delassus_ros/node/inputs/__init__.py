"""What the nodes are told, from the messages to numbers that may be computed with."""
