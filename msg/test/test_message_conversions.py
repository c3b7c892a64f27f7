"""Messages to numpy and back, serialisation included."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import (
    ActiveContacts,
    ContactDynamics,
    DelassusMatrix,
    Estimate,
    Layout,
)
from delassus_msgs_py import (
    MatrixWriter,
    MessageError,
    active_names,
    compute_layout_id,
    contact_block,
    contact_rows,
    matrix_to_numpy,
    numpy_to_matrix,
    reason_names,
)
from geometry_msgs.msg import Point, Pose
from rclpy.serialization import deserialize_message, serialize_message


def _copy_over_the_wire(msg: Any) -> Any:
    return deserialize_message(serialize_message(msg), type(msg))


def _symmetric(m: int) -> np.ndarray:
    J = np.random.default_rng(m).standard_normal((m, m + 3))
    return J @ J.T


@pytest.fixture
def walking() -> tuple[DelassusMatrix, np.ndarray]:
    """Two point feet and a hand that is welded to something."""
    G = _symmetric(12)
    msg = DelassusMatrix(
        contacts=["LF", "RH", "hand"],
        kinds=["point", "point", "surface"],
        status=[2, 3, 1],
        row_offsets=[0, 3, 6, 12],
        validity=DelassusMatrix.VALIDITY_OK,
    )
    numpy_to_matrix(msg, G)
    return msg, G


def test_round_trip_keeps_every_bit(walking: tuple[DelassusMatrix, np.ndarray]) -> None:
    msg, G = walking
    received = _copy_over_the_wire(msg)
    assert received == msg
    np.testing.assert_array_equal(matrix_to_numpy(received), G)


@pytest.mark.parametrize("layout", ["C", "F"])
def test_any_memory_layout_is_written_row_by_row(layout: str) -> None:
    G = np.asarray([[1.0, 2.0], [3.0, 4.0]], order=layout)  # type: ignore[call-overload]
    msg = DelassusMatrix()
    numpy_to_matrix(msg, G)
    assert list(msg.matrix) == [1.0, 2.0, 3.0, 4.0]
    numpy_to_matrix(msg, G[:, ::-1])
    assert list(msg.matrix) == [2.0, 1.0, 4.0, 3.0]


def test_the_message_holds_a_copy_and_gives_a_view(
    walking: tuple[DelassusMatrix, np.ndarray],
) -> None:
    msg, G = walking
    first = float(G[0, 0])
    G[0, 0] = -1.0
    view = matrix_to_numpy(msg)
    assert view[0, 0] == first
    view[0, 0] = 7.0
    assert msg.matrix[0] == 7.0


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 2, 2)])
def test_a_matrix_that_is_not_square_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(MessageError, match="square"):
        numpy_to_matrix(DelassusMatrix(), np.zeros(shape))


def test_blocks_by_name(walking: tuple[DelassusMatrix, np.ndarray]) -> None:
    msg, G = walking
    assert contact_rows(msg, "RH") == slice(3, 6)
    np.testing.assert_array_equal(contact_block(msg, "RH", "hand"), G[3:6, 6:12])
    np.testing.assert_array_equal(contact_block(msg, "hand"), G[6:12, 6:12])
    contact_block(msg, "LF")[...] = 0.0
    assert not np.any(matrix_to_numpy(msg)[:3, :3])


def test_a_block_of_a_missing_contact_names_those_present(
    walking: tuple[DelassusMatrix, np.ndarray],
) -> None:
    with pytest.raises(MessageError, match=r"'RF' is not in this matrix; contacts: LF, RH, hand"):
        contact_block(walking[0], "LF", "RF")


def test_a_new_message_is_invalid_and_has_no_matrix() -> None:
    msg = DelassusMatrix(reasons=DelassusMatrix.REASON_NO_JOINT_STATE)
    assert msg.validity == DelassusMatrix.VALIDITY_INVALID
    assert (msg.rank, msg.structural_rank) == (-1, -1)
    assert matrix_to_numpy(msg).shape == (0, 0)
    with pytest.raises(MessageError, match=r"INVALID \(reasons 0x20\)"):
        contact_block(msg, "LF")


def test_invalid_with_contacts_named_is_empty(
    walking: tuple[DelassusMatrix, np.ndarray],
) -> None:
    msg, _ = walking
    msg.validity = DelassusMatrix.VALIDITY_INVALID
    msg.matrix = array.array("d")
    assert matrix_to_numpy(msg).shape == (0, 0)


def test_invalid_with_a_matrix_contradicts_itself(
    walking: tuple[DelassusMatrix, np.ndarray],
) -> None:
    msg, _ = walking
    msg.validity = DelassusMatrix.VALIDITY_INVALID
    with pytest.raises(MessageError, match=r"is INVALID \(reasons .*, but has \d+ matrix values"):
        matrix_to_numpy(msg)


@pytest.mark.parametrize("row_offsets", [[], [0]])
def test_no_active_contact_is_valid_and_empty(row_offsets: list[int]) -> None:
    msg = DelassusMatrix(validity=DelassusMatrix.VALIDITY_OK, row_offsets=row_offsets)
    assert matrix_to_numpy(_copy_over_the_wire(msg)).shape == (0, 0)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("matrix", array.array("d", [1.0]), "1 matrix values; expected 144"),
        ("matrix", array.array("d"), "0 matrix values; expected 144"),
        ("row_offsets", [0, 3, 6], "3 row_offsets; expected 4"),
        ("row_offsets", [0, 6, 3, 12], "ascend from 0"),
        ("row_offsets", [3, 6, 9, 12], "ascend from 0"),
        ("kinds", ["point"], "1 kinds; expected 3"),
        ("status", [2], "1 status; expected 3"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    walking: tuple[DelassusMatrix, np.ndarray], field: str, value: Any, message: str
) -> None:
    msg, _ = walking
    setattr(msg, field, value)
    with pytest.raises(MessageError, match=message):
        matrix_to_numpy(msg)


def test_the_writer_fills_its_message_in_place() -> None:
    writer = MatrixWriter()
    assert writer.view.shape == (0, 0)
    for m in (6, 12, 6, 0, 3):
        writer.resize(m)
        assert writer.view.shape == (m, m)
        assert not np.any(writer.view)
        G = _symmetric(m)
        view = writer.view
        writer.view[...] = G
        writer.resize(m)
        assert writer.view is view
        received = _copy_over_the_wire(writer.msg)
        assert received.matrix.tobytes() == G.tobytes()


def test_the_writer_takes_over_a_message(walking: tuple[DelassusMatrix, np.ndarray]) -> None:
    msg, G = walking
    writer = MatrixWriter(msg)
    writer.resize(12)
    writer.view[...] = 2.0 * G
    np.testing.assert_array_equal(matrix_to_numpy(msg), 2.0 * G)


def test_the_writer_refuses_a_negative_size() -> None:
    with pytest.raises(MessageError, match="-1"):
        MatrixWriter().resize(-1)


def test_active_and_slipping_contacts_take_part() -> None:
    msg = ActiveContacts(
        names=["RH", "LF", "RF", "LH"],
        status=[
            ActiveContacts.SLIPPING,
            ActiveContacts.INACTIVE,
            ActiveContacts.UNKNOWN,
            ActiveContacts.ACTIVE,
        ],
    )
    assert active_names(_copy_over_the_wire(msg)) == ("RH", "LH")
    assert active_names(ActiveContacts()) == ()


@pytest.mark.parametrize(
    ("names", "status", "message"),
    [
        (["LF", "RF"], [2], "2 names and 1 status values"),
        (["LF", "RF", "LF"], [2, 2, 1], "'LF' more than once"),
        (["LF", "RF"], [2, 9], "'RF' the status 9"),
    ],
)
def test_a_contradictory_set_of_contacts_is_refused(
    names: list[str], status: list[int], message: str
) -> None:
    with pytest.raises(MessageError, match=message):
        active_names(ActiveContacts(names=names, status=status))


@pytest.fixture
def layout() -> Layout:
    msg = Layout(
        robot="quadruped",
        base="floating",
        contacts=["LF", "RH"],
        frames=["LF_FOOT", "RH_FOOT"],
        placements=[Pose(), Pose()],
        kinds=["point", "point"],
        row_offsets=[0, 3, 6],
        joints=["LF_HAA", "RH_HAA"],
        axes=Layout.AXES_CONTACT,
    )
    msg.layout_id = compute_layout_id(msg)
    return msg


def test_the_layout_id_survives_the_wire(layout: Layout) -> None:
    received = _copy_over_the_wire(layout)
    received.header.stamp.sec = 5
    assert compute_layout_id(received) == layout.layout_id
    assert len(layout.layout_id) == 16
    int(layout.layout_id, base=16)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("robot", "other"),
        ("base", "fixed"),
        ("contacts", ["RH", "LF"]),
        ("frames", ["LF_FOOT,RH_FOOT"]),
        ("placements", [Pose(position=Point(x=0.1)), Pose()]),
        ("kinds", ["point", "surface"]),
        ("selections", array.array("d", [0.0, 0.0, 1.0, 0.0, 0.0, 0.0])),
        ("row_offsets", [0, 3, 9]),
        ("joints", ["RH_HAA", "LF_HAA"]),
        ("axes", Layout.AXES_WORLD),
    ],
)
def test_every_field_of_a_layout_changes_its_id(layout: Layout, field: str, value: Any) -> None:
    setattr(layout, field, value)
    assert compute_layout_id(layout) != layout.layout_id


def test_the_frame_of_a_layout_changes_its_id(layout: Layout) -> None:
    layout.header.frame_id = "odom"
    assert compute_layout_id(layout) != layout.layout_id


def test_reasons_have_the_names_of_their_constants() -> None:
    msg = DelassusMatrix(
        reasons=DelassusMatrix.REASON_JOINT_MISSING | DelassusMatrix.REASON_ORIENTATION_STALE
    )
    assert reason_names(msg) == ("JOINT_MISSING", "ORIENTATION_STALE")
    assert reason_names(DelassusMatrix()) == ()
    assert reason_names(DelassusMatrix.REASON_DAMPED | 1 << 63) == ("DAMPED", "BIT_63")
    kinds = (DelassusMatrix, ContactDynamics, Estimate)
    names = {name for kind in kinds for name in dir(kind) if name.startswith("REASON_")}
    for kind in kinds:
        for name in (each for each in dir(kind) if each in names):
            assert reason_names(getattr(kind, name)) == (name.partition("_")[2],)
