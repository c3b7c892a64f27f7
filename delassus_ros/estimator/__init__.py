"""ROS node that estimates torques and wrenches, with covariance, from measurements.

The parameter `now` of classes and functions returns the time of the node's clock [ns]; `warn` is
called with the kind of a warning and its text.
"""
