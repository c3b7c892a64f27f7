"""Recordings: what the node would have published, from what was recorded. Needs no running ROS."""
