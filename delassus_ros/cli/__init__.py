"""The command `delassus`: look at a robot, compute its matrix, compare algorithms."""
