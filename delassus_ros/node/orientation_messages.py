"""The orientation of the base in messages."""

from __future__ import annotations

from typing import Any

from sensor_msgs.msg import Imu

from delassus_ros.node.arrival import stamp_of
from delassus_ros.node.orientation_input import OrientationInput
from delassus_ros.node.reasons import Complaint


def read_message(
    source: OrientationInput, message: Any, now: int, delay: int = 0
) -> Complaint | None:
    """Give a source the orientation in a message.

    Parameters
    ----------
    source : checks it.
    message : nav_msgs/Odometry, whose child frame is that of the source, or sensor_msgs/Imu,
        which does not name the frame that it is relative to.
    now : time of the node's clock [ns].
    delay : how long before it was sent [ns].
    """
    header = message.header
    stamp = stamp_of(header.stamp.sec, header.stamp.nanosec)
    if isinstance(message, Imu):
        # REP 145 and the message's own comment: -1 says that there is no estimate.
        if message.orientation_covariance[0] == -1.0:
            return source.refuse(now, "the Imu says that it has none", delay)
        orientation, frame, world = message.orientation, header.frame_id, None
        known = message.angular_velocity_covariance[0] != -1.0
        rates = message.angular_velocity
    else:
        orientation = message.pose.pose.orientation
        frame, world = message.child_frame_id, header.frame_id
        known, rates = True, message.twist.twist.angular
    values = orientation.x, orientation.y, orientation.z, orientation.w
    turning = (rates.x, rates.y, rates.z) if known else (0.0, 0.0, 0.0)
    return source.read(values, stamp, now, frame, world, turning, delay)
