"""Base of every ROS 2 node: programs, reception, clocks, parameters, diagnostics, real time.

The parameter `warn` of classes and functions is called with the kind of a warning and its text.
"""
