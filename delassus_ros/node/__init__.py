"""The ROS node that publishes the Delassus matrix; needs rclpy and delassus_msgs.

Run it as ``delassus_node`` or ``python -m delassus_ros.node.main``.

The parameter `now` of classes and functions returns the time of the node's clock [ns], and `stamp`
is in ns, too; `warn` is called with the kind of a warning and its text.
"""
