"""ROS node that tells torques and wrenches, with covariance, from whatever is measured."""
