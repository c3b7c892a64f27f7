"""A humanoid that stands, squats, shifts its weight and steps, on the matrices of the node."""
