"""ROS node that estimates torques and wrenches, with covariance, from measurements."""
