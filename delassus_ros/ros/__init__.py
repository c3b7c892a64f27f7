"""Base of every ROS 2 node: programs, reception, clocks, parameters, diagnostics, real time."""
