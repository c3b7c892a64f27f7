"""A quadruped that stands, trots and turns by a small quadratic program on the node's matrices."""
