"""Drawings of matrices: ellipsoids, couplings and heat maps, on the robot's skeleton."""
