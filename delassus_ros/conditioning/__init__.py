"""How well the matrix can be inverted, damping where it cannot, and the rank that it can have."""
