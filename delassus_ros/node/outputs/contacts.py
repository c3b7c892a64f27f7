"""The messages of estimated contacts."""

from __future__ import annotations

from delassus_msgs.msg import EstimatedContacts
from geometry_msgs.msg import Vector3, Wrench

from delassus_ros.inputs.contact_estimator import ContactEstimator
from delassus_ros.ros.arrival import write_stamp


def estimated_contacts(estimator: ContactEstimator, frame: str) -> EstimatedContacts:
    """Return the latest estimate as a message, in the frame of the rows."""
    message = EstimatedContacts(
        names=estimator.contacts.names, status=estimator.status,
        probability=estimator.probability.tolist(),
    )  # fmt: skip
    write_stamp(message.header.stamp, estimator.stamp)
    message.header.frame_id = frame
    message.wrenches = [
        Wrench(force=Vector3(x=fx, y=fy, z=fz), torque=Vector3(x=mx, y=my, z=mz))
        for fx, fy, fz, mx, my, mz in estimator.wrenches().tolist()
    ]
    return message
