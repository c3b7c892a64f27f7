"""The physics of the demo robots, and the ROS nodes that show them; needs the extra ``sim``."""
