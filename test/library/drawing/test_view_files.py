"""Layouts for RViz, Foxglove and PlotJuggler: what they show is what the nodes publish."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import yaml

VIEW = Path(__file__).parents[3] / "config" / "view"
MARKERS = {"/delassus_markers/markers", "/delassus_markers/heat_map"}
GROUPS = {"effective mass", "couplings", "state"}


def summary_fields() -> set[str]:
    import delassus_msgs.msg as messages
    return set(messages.Summary.get_fields_and_field_types())


def test_rviz_shows_markers_on_the_robot() -> None:
    displays = yaml.safe_load((VIEW / "delassus.rviz").read_text())["Visualization Manager"][
        "Displays"
    ]
    topics = {d["Topic"]["Value"] for d in displays if "Topic" in d}
    assert topics == MARKERS
    (array,) = (d for d in displays if d["Class"].endswith("MarkerArray"))
    assert set(array["Namespaces"]) == GROUPS


def test_foxglove_shows_markers_and_the_summary() -> None:
    text = (VIEW / "delassus.foxglove.json").read_text()
    layout = json.loads(text)
    assert set(re.findall(r"/delassus_markers/\w+", text)) == MARKERS
    used = set(re.findall(r"/delassus_node/summary\.(\w+)", text))
    assert used and used <= summary_fields()
    panels = set(re.findall(r'"(\w+!\w+)"', json.dumps(layout["layout"])))
    assert panels == set(layout["configById"])


def test_plotjuggler_plots_the_summary() -> None:
    root = ElementTree.parse(VIEW / "summary.plotjuggler.xml").getroot()
    curves = {curve.attrib["name"] for curve in root.iter("curve")}
    assert {name.rpartition("/")[0] for name in curves} == {"/delassus_node/summary"}
    assert {name.rpartition("/")[2] for name in curves} <= summary_fields()
