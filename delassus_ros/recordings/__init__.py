"""Recordings: messages that the node would have published, without a running ROS graph."""
