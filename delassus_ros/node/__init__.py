"""The ROS node that publishes the Delassus matrix; needs rclpy and delassus_msgs.

Run it as ``delassus_node`` or ``python -m delassus_ros.node.main``.
"""
