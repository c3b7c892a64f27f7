"""The command `delassus`: inspect a robot, compute its matrix, compare algorithms."""
