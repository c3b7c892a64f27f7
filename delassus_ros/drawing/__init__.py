"""Matrices as people see them: ellipsoids, couplings, heat maps, on the robot's skeleton."""
