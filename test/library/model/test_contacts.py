"""Contacts: kinds and their rows, what is refused, order of the set, active subsets."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from delassus import Contact, ContactSet, Transform
from delassus.contacts import NORMALS, cone_axes, direction
from delassus.errors import ContactError, InputError

K = [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.5, 0.5, 0.0]]


def four() -> ContactSet:
    """Return contacts of 3, 6, 2 and 3 rows."""
    kinds = {"LF": "point", "RF": "surface", "LH": K, "RH": "point"}
    return ContactSet(Contact(name, f"{name}_FOOT", kind) for name, kind in kinds.items())


def test_kinds_select_rows_linear_first() -> None:
    point, surface, own = (Contact("c", "f", kind) for kind in ("point", "surface", K))
    assert point.selection.tolist() == np.eye(6)[:3].tolist()
    assert surface.selection.tolist() == np.eye(6).tolist()
    assert own.selection.tolist() == K
    assert [c.rows for c in (point, surface, own)] == [3, 6, 2]
    assert [c.kind_name for c in (point, surface, own)] == ["point", "surface", "selection"]
    assert Contact("c", "f").kind_name == "point"


def test_selection_is_a_read_only_copy() -> None:
    given = np.array(K)
    contact = Contact("c", "f", given)
    given[:] = 7.0
    assert contact.selection.tolist() == K
    with pytest.raises(ValueError, match="read-only"):
        contact.selection[0, 0] = 1.0


def test_moving_is_one_of_three_choices() -> None:
    assert Contact("c", "f").moving == "nothing"
    for moving in ("nothing", "position", "pose"):
        assert Contact("c", "f", moving=moving).moving == moving


def test_friction_normal_and_dimensions() -> None:
    plain = Contact("c", "f")
    assert (plain.friction, plain.normal, plain.dimensions, plain.cone) == (None, "z", None, {})
    foot = Contact("c", "f", friction=np.float64(0.6), normal=[0, 0, -2])
    assert foot.cone == {"friction": 0.6, "normal": "-z"}
    assert Contact("c", "f", normal=[0, 3, 4]).normal == (0.0, 0.6, 0.8)
    sole = Contact("c", "f", "surface", friction=0, dimensions=[0.2, 0.1])
    assert sole.cone == {"friction": 0.0, "dimensions": (0.2, 0.1)}


KINDS = [
    ("sphere", "contact 'c': unknown kind 'sphere'; kinds: point, surface, or a"),
    ("surfaces", r"unknown kind 'surfaces'; did you mean 'surface'\?"),
    (["a"] * 6, r"kind must be 'point', 'surface' or a \(k, 6\) array of numbers"),
    (None, "contact 'c': "),
    (np.eye(6)[0], r"a selection has shape \(k, 6\) with 1 <= k <= 6, this one has \(6,\)"),
    (np.eye(3), r"this one has \(3, 3\)"),
    (np.ones((0, 6)), r"this one has \(0, 6\)"),
    (np.vstack([np.eye(6)] * 2), r"this one has \(12, 6\)"),
    ([[np.nan] * 6], "the selection has non-finite entries"),
    ([[1, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0]], "selection's 2 rows have rank 1; G would be"),
    ([[1, 0, 0, 0, 0, 0], [0] * 6], "row 1 of the selection has norm 0; expected 1e-09 to"),
    ([[1e200, 0, 0, 0, 0, 0]], r"row 0 of the selection has norm inf; .* to 1e\+09"),
    ([[1e10, 0, 0, 0, 0, 0]], r"row 0 of the selection has norm 1e\+10"),
    ([[0, 0, 0, 0, 0, 1e-200]], "row 0 of the selection has norm "),
]
CONES = [
    ({"friction": -0.1}, "contact 'c': friction is -0.1; expected a number of 0 to 10000"),
    ({"friction": np.nan}, "contact 'c': friction is nan; expected a number of 0 to 10000"),
    ({"friction": np.inf}, "contact 'c': friction is inf; expected a number of 0 to 10000"),
    ({"friction": "rough"}, "contact 'c': friction is 'rough'; expected a number"),
    ({"friction": [0.5, 0.6]}, r"contact 'c': friction is \[0.5, 0.6\]; expected a number"),
    ({"friction": 0.5, "kind": K}, "friction is 0.5, but its kind is 'selection'; friction is"),
    ({"normal": "up"}, "contact 'c': unknown normal 'up'; normals: x, y, z, -x, -y, -z, or a"),
    ({"normal": None}, "contact 'c': normal is None; expected "),
    ({"normal": [0, 0, 0]}, r"normal is \[0, 0, 0\]; expected the name of an axis"),
    ({"normal": [0, np.nan, 1]}, r"normal is \[0, nan, 1\]; expected the name of an axis"),
    ({"normal": [0, 1]}, r"normal is \[0, 1\]; expected the name of an axis .* or three"),
    ({"normal": "x", "kind": "surface"}, "its kind is 'surface'; normal is of kind point al"),
    ({"normal": "-z", "kind": K}, "normal is -z, but its kind is 'selection'; normal is of"),
    ({"dimensions": [0.2, 0.1]}, "its kind is 'point'; dimensions is of kind surface alone"),
    ({"dimensions": 0.2, "kind": "surface"}, "dimensions are 0.2; expected length and width"),
    ({"dimensions": [0.2, 0], "kind": "surface"}, "expected length and width of the surface,"),
    ({"dimensions": [np.inf, 1], "kind": "surface"}, "two positive numbers in m"),
]
OTHERS = [
    ({"name": ""}, "contact on frame 'f': its name is empty"),
    *(
        ({what: name}, f"{whose}its {what} is 'a.*{words}")
        for what, whose in (("name", ""), ("frame", "contact 'c': "))
        for name, words in (
            ("a\udc80", "expected text that is valid UTF-8"),
            ("a\0b", "text without zero characters"),
        )
    ),
    *(
        ({"placement": wrong}, "'c': placement is .*; expected a Transform: write Transform")
        for wrong in (None, np.eye(4), (0.1, 0.0, 0.0))
    ),
    *(
        ({"moving": wrong}, "contact 'c': unknown moving .*choices: nothing, position, pose")
        for wrong in ("poses", True, None, ["pose"])
    ),
]


@pytest.mark.parametrize(
    ("fields", "words"), [*(({"kind": kind}, words) for kind, words in KINDS), *CONES, *OTHERS]
)
def test_contact_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ContactError, match=words):
        Contact(**{"name": "c", "frame": "f", **fields})


def test_axes_of_a_cone_are_right_handed_and_end_with_the_normal() -> None:
    assert cone_axes("z").tolist() == np.eye(3).tolist()
    for normal in (*NORMALS, [1, 2, -3], [0, 0, 1e-6], [1e-9, 0, -1]):
        axes = cone_axes(normal)
        np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-15)
        np.testing.assert_allclose(np.cross(axes[0], axes[1]), axes[2], atol=1e-15)
        assert axes[2].tolist() == direction(normal).tolist()


def test_set_keeps_order_and_offsets() -> None:
    contacts = four()
    assert contacts.names == ("LF", "RF", "LH", "RH")
    assert contacts.row_offsets == (0, 3, 9, 11, 14)
    assert contacts.rows == 14
    assert len(contacts) == 4
    assert [c.name for c in contacts] == list(contacts.names)
    assert contacts[1].frame == "RF_FOOT"
    assert [c.name for c in contacts[1:3]] == ["RF", "LH"]
    assert repr(contacts) == "ContactSet(LF, RF, LH, RH; 14 rows)"


def test_set_refusals() -> None:
    with pytest.raises(ContactError, match="needs at least one contact"):
        ContactSet([])
    with pytest.raises(ContactError, match="'a' appears twice; contacts: a, b, a"):
        ContactSet([Contact("a", "f"), Contact("b", "f"), Contact("a", "g")])
    with pytest.raises(ContactError, match=r"Contact objects, got 'LF'; write Contact\("):
        ContactSet(["LF"])  # type: ignore[list-item]


def test_active_names_in_any_order_give_ascending_indices() -> None:
    contacts = four()
    assert contacts.indices(["RH", "LF"]) == (0, 3)
    assert contacts.indices(iter(["LH", "RF", "RH", "LF"])) == (0, 1, 2, 3)
    assert contacts.indices([]) == ()


@pytest.mark.parametrize(
    ("active", "words"),
    [
        (["LF", "RFF"], r"unknown contact 'RFF'; did you mean 'RF'\? contacts: LF, RF, LH, RH"),
        (["tail"], "unknown contact 'tail'; contacts: LF, RF, LH, RH"),
        ([3], "active contacts must be a list of names, got 3 in it"),
        (3, "active contacts must be a list of names, got 3"),
        (["LF", "RF", "LF"], "contact 'LF' is given twice among the active ones"),
        ("LF", r"active contacts must be a list of names: write \['LF'\]"),
    ],
)
def test_refused_active_sets(active: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        four().indices(active)  # type: ignore[arg-type]


def test_bytes_change_with_everything_that_the_matrix_depends_on() -> None:
    plain = Contact("c", "f")
    others = [
        Contact("d", "f"),
        Contact("c", "g"),
        Contact("c", "f", "surface"),
        Contact("c", "f", K),
        Contact("c", "f", K[:1]),
        Contact("c", "f", np.eye(3, 6)),
        Contact("c", "f", "point", Transform.from_xyz_rpy((0.1, 0, 0))),
        Contact("c", "f", "point", Transform.from_xyz_rpy(rpy=(0, 0.1, 0))),
        Contact("c", "f", moving="position"),
        Contact("c", "f", moving="pose"),
    ]
    assert len({plain.row_bytes(), *(other.row_bytes() for other in others)}) == 1 + len(others)
    assert len({plain.to_bytes(), *(other.to_bytes() for other in others)}) == 1 + len(others)
    rough, turned = Contact("c", "f", friction=0.5), Contact("c", "f", normal="x")
    assert len({c.to_bytes() for c in (plain, rough, turned)}) == 3
    assert plain.row_bytes() == rough.row_bytes() == turned.row_bytes() == plain.to_bytes()
    assert Contact("c", "f").to_bytes() == plain.to_bytes()
    one, two = ContactSet([plain, others[0]]), ContactSet([others[0], plain])
    assert one.to_bytes() != two.to_bytes()


def test_pickles() -> None:
    contacts = four()
    again = pickle.loads(pickle.dumps(contacts))
    assert again.to_bytes() == contacts.to_bytes()
    assert again.indices(["RH"]) == (3,)
