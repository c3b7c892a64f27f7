"""The messages are frozen: recordings and other nodes rely on their fields."""

from __future__ import annotations

import json
from pathlib import Path

import delassus_msgs.msg as messages
import pytest

# A recording or a node of another version of this package is understood only if these
# are the same. Changing a field changes them; constants and comments do not.
TYPE_HASHES = {
    "ActiveContacts": "RIHS01_56d3258f5d004020a10f11fea488dd422e1de185e990d5b5b4aa69306c5281ea",
    "ContactDynamics": "RIHS01_5d3f770963c67e2ef04916edea583afc8d4aa192b9c58a65ffcfa3aaf7eef0da",
    "ContactPlacements": "RIHS01_82cd2f599580c14ef7613622973387f41f7f04ebb472af39b27d68c376660bcb",
    "ContactSchedule": "RIHS01_31d8e901afbe923bb6cfe8fef1669fe3dd6cc6991e04e09624e9c8619397d4e2",
    "DelassusMatrix": "RIHS01_df65efca769fda57e833d2d7d6431cd9290f4b3c90249a763596b2b32929cfec",
    "Estimate": "RIHS01_8a589e12eeda6a2e2546247bf7cd9a812e4eff106b29933064da78ae4fd045fa",
    "EstimatedContacts": "RIHS01_6bf5004a44072423409b1d5211d8c5a08fb0e0615725f4642bbc1c74da1d37d5",
    "Layout": "RIHS01_ebaf2203e1d0ddda9f50804a7f30d02fd953e7c73334833d9ead8aacce8d1eb5",
    "PredictedMatrices": "RIHS01_d7d8a3a03a83a2cc5469f7797dd530ab116706090fc3fbd3ad9008804a379a09",
    "PredictedStates": "RIHS01_b049f3660a4c56ca7c7eff381dd78405656261d17a07ca3063006633cc87315b",
    "Summary": "RIHS01_a1fac52d5cd6ed462a64811fe88a124779fe5b94497a1704f8b178f0bb4e45c3",
    "Compute": "RIHS01_77ebd26c5add956b2edb71e13d5e0856a48441c7080fa090b31a0186d012eaf5",
    "ComputeHorizon": "RIHS01_ba6f1c3ab722a960071467ba69955f9ae46608c37a01bfe1c20b94b076d1ca3b",
    "ListAlgorithms": "RIHS01_20f29c87561a9335a9153a43ba5d155d60907f7596b520eb40864bd90b47a884",
}
SERVICES = ("Compute", "ComputeHorizon", "ListAlgorithms")


@pytest.mark.parametrize("name", TYPE_HASHES)
def test_type_hash(name: str) -> None:
    prefixes = Path(messages.__file__).parents
    kind = "srv" if name in SERVICES else "msg"
    path = Path("share", "delassus_msgs", kind, f"{name}.json")
    file = next(prefix / path for prefix in prefixes if (prefix / path).is_file())
    description = json.loads(file.read_text())
    hashes = {entry["type_name"]: entry["hash_string"] for entry in description["type_hashes"]}
    assert hashes[f"delassus_msgs/{kind}/{name}"] == TYPE_HASHES[name]


def test_status_values_are_those_of_whole_body_state_msgs() -> None:
    contacts = messages.ActiveContacts
    values = (contacts.UNKNOWN, contacts.INACTIVE, contacts.ACTIVE, contacts.SLIPPING)
    assert values == (0, 1, 2, 3)


def test_reasons_are_single_bits_of_their_own() -> None:
    """Of all messages together, as each has those of the matrix, too."""
    values = sorted(
        getattr(kind, name)
        for kind in (messages.DelassusMatrix, messages.ContactDynamics, messages.Estimate)
        for name in dir(kind)
        if name.startswith("REASON_")
    )
    assert values == [1 << bit for bit in range(len(values))]


def test_validity_agrees_between_the_messages() -> None:
    for name in ("VALIDITY_INVALID", "VALIDITY_DEGRADED", "VALIDITY_OK"):
        value = getattr(messages.DelassusMatrix, name)
        assert getattr(messages.ContactDynamics, name) == value
        assert getattr(messages.Estimate, name) == value


def test_axes_agree_between_layout_and_matrix() -> None:
    for name in ("AXES_CONTACT", "AXES_WORLD"):
        values = {getattr(kind, name) for kind in (messages.Layout, messages.DelassusMatrix)}
        assert values == {getattr(messages.ContactDynamics, name)}
