"""Sets of active contacts."""

from __future__ import annotations

from delassus_msgs.msg import ActiveContacts

from .errors import MessageError

_IN_CONTACT = frozenset((ActiveContacts.ACTIVE, ActiveContacts.SLIPPING))
_STATUS = frozenset((ActiveContacts.UNKNOWN, ActiveContacts.INACTIVE)) | _IN_CONTACT


def active_names(msg: ActiveContacts) -> tuple[str, ...]:
    """Return the names of the contacts that take part in the Delassus matrix.

    Parameters
    ----------
    msg
        A set of active contacts.

    Returns
    -------
    tuple of str
        The names whose status is ACTIVE or SLIPPING, in the order of the message.

    Raises
    ------
    MessageError
        If names and status differ in size, if a name is listed twice, or if a status is
        none of the constants of the message.

    """
    names = msg.names
    status = msg.status
    if len(names) != len(status):
        raise MessageError(
            f"ActiveContacts has {len(names)} names and {len(status)} status values; "
            "expected one status for each name"
        )
    if len(set(names)) != len(names):
        repeated = next(name for i, name in enumerate(names) if name in names[:i])
        raise MessageError(f"ActiveContacts lists contact {repeated!r} more than once")
    for name, value in zip(names, status, strict=True):
        if value not in _STATUS:
            raise MessageError(
                f"ActiveContacts gives contact {name!r} the status {value}; "
                "expected UNKNOWN=0, INACTIVE=1, ACTIVE=2 or SLIPPING=3"
            )
    return tuple(name for name, value in zip(names, status, strict=True) if value in _IN_CONTACT)
