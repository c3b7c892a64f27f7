"""Names that do harm: what is written and shown of them is text, for YAML and for terminals."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest
import yaml
from urdf_text import joint, link, robot_xml

from delassus.errors import unknown
from delassus.programs.terminal import control, replace_line, shown_output
from delassus.visible import visible, visible_json
from delassus_ros.verbs.config import _lines
from delassus_ros.verbs.main import main
from delassus_ros.verbs.parameter_files import parameters_of

NAMES = (
    "foot", "a b", " foot ", "left\\foot", 'the "foot"', "it's", "a\nb", "a\n    base: floating",
    "a\r\nb", "a\tb", "a\u2028b", "a\u2029b", "a\u0085b", "a\u202eb", "\ufeffa", "a\U000e0001b",
    "007", "0x10", "0o7", "1e5", "1_000", "1.5", "-3", ".5", "1:30", "2020-01-01", "nan", "NaN",
    "inf", "Infinity", ".inf", "-.inf", "true", "Yes", "off", "n", "null", "Null", "~", "-", "?",
    ":", "=", "<<", "- a", "? a", "a: b", "a:", "a #b", "#a", "&a", "*a", "!a", "!!int", "%a",
    "@a", "`a", "|", ">", "[a]", "{a}", "a,b", "a]", "a}", "---", "...", "..", "names", "names_",
    "frame", "f.frame", "f_frame", ".f", "f.", "a/b", "füße", "足", "\U0001f9b6", "x" * 200,
)  # fmt: skip
"""Names of links, each of which some reader of YAML takes for something else if it is bare."""
HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e"
"""Sets the title of a terminal, clears it, colours it and turns the direction of text."""


def robot(name: str, links: tuple[str, ...]) -> str:
    """Return an arm with a hand of links that are called so."""
    parts = [link("base"), link("palm"), joint("wrist", "base", "palm")]
    for k in range(len(links)):
        parts += [link(f"end{k}"), joint(f"joint{k}", "palm", f"end{k}")]
    text = robot_xml(*parts)
    for k, each in enumerate(links):
        escaped = quoteattr(each, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;", "\x85": "&#133;"})
        text = text.replace(f'"end{k}"', escaped)
    head = quoteattr(name, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
    assert '<robot name="test"' in text
    return text.replace('<robot name="test"', f"<robot name={head}")


def config(capsys, path: Path, *options: str) -> str:
    assert main(["config", str(path), *options]) == 0
    return capsys.readouterr().out


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        found |= flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return found


def by_ros(path: Path) -> dict[str, Any]:
    """Return the parameters that a node of ROS finds in a file."""
    import rclpy
    from ros_domains import new_domain

    context = rclpy.Context()
    arguments = ["--ros-args", "--params-file", str(path)]
    rclpy.init(args=arguments, context=context, domain_id=new_domain())
    try:
        node = rclpy.create_node(
            "reader", context=context, automatically_declare_parameters_from_overrides=True,
            start_parameter_services=False,
        )  # fmt: skip
        values = {name: each.value for name, each in node.get_parameters_by_prefix("").items()}
        node.destroy_node()
    finally:
        rclpy.try_shutdown(context=context)
    return {k: list(v) if hasattr(v, "__iter__") and not isinstance(v, str) else v
            for k, v in values.items()}  # fmt: skip


def test_every_reader_finds_the_names_that_were_written(tmp_path: Path, capsys) -> None:
    for start in range(0, len(NAMES), 8):
        links = NAMES[start : start + 8]
        path, file = tmp_path / "robot.urdf", tmp_path / "robot.yaml"
        path.write_text(robot("test", links), encoding="utf-8")
        text = config(capsys, path)
        file.write_text(text, encoding="utf-8")
        asked = json.loads(config(capsys, path, "--json"))["/**"]["ros__parameters"]
        assert yaml.safe_load(text)["/**"]["ros__parameters"] == asked
        values = flat(asked)
        assert [values[f"contacts.{c}.frame"] for c in asked["contacts"]["names"]] == list(links)
        assert set(values) == {
            "autostart", "base", "axes", "algorithm", "contacts.names",
            *(f"contacts.{name}.{key}" for name in asked["contacts"]["names"]
              for key in ("frame", "kind")),
        }  # fmt: skip
        names = tuple(values["contacts.names"])
        assert parameters_of(str(file)) == {**values, "contacts.names": names}
        found = by_ros(file)
        assert {name: found[name] for name in values} == values


@pytest.mark.parametrize(
    "name", ["010", "arm\n/**:\n  ros__parameters:\n    base: x", "# \u2028a: b", HOSTILE]
)
def test_the_name_of_a_robot_is_a_comment_alone(tmp_path: Path, capsys, name: str) -> None:
    path = tmp_path / "robot.urdf"
    name = name.replace("\x1b", "").replace("\x07", "")  # which XML does not have
    path.write_text(robot(name, ("foot",)), encoding="utf-8")
    text = config(capsys, path)
    assert set(yaml.safe_load(text)["/**"]["ros__parameters"]) == {
        "autostart", "base", "axes", "algorithm", "contacts"
    }  # fmt: skip
    lines = text.split("\n")
    assert [line for line in lines if line.startswith("# Parameters of")] == lines[:1]


def test_shapes_and_loops_are_no_way_in(tmp_path: Path, capsys) -> None:
    """Elements of other namespaces may be called as they like."""
    shape = "<collision><geometry><box size='1 1 1'/><n:Z xmlns:n='http://a&#10;b: c'/></geometry>"
    path = tmp_path / "robot.urdf"
    text = robot("test", ("foot",)).replace(
        '<link name="foot">', f'<link name="foot">{shape}</collision>'
    )
    assert shape in text
    path.write_text(text)
    assert "# a box\n" in config(capsys, path)
    assert yaml.safe_load("\n".join(_lines({"": {"names": ["", "a"]}}, 4, "why"))) == {
        "": {"names": ["", "a"]}
    }
    assert _lines({"loops": "a\nb: c"}, 4, "") == ['    loops: "a\\nb: c"']


SHOWN = (
    ("a\x1b[31mb", "a\\x1b[31mb"), ("\x9b2J", "\\x9b2J"), ("\x07\r\x7f", "\\x07\\x0d\\x7f"),
    ("\u202eb\u2066", "\\u202eb\\u2066"), ("\u2028", "\\u2028"), ("\U000e0041", "\\U000e0041"),
    ("M⁻¹ Jᵀ 足 ├ █ \u3000 🦶", "M⁻¹ Jᵀ 足 ├ █ \u3000 🦶"), ("\ud800", "\\ud800"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SHOWN)
def test_control_characters_escaped(text: str, expected: str) -> None:
    assert visible(text) == expected
    assert visible(f"{text}\n\t", "\n") == f"{expected}\n\\x09"
    line = json.dumps({"a": text}, ensure_ascii=False)
    assert json.loads(visible_json(line)) == {"a": text}
    assert visible(visible_json(line)) == visible_json(line)


def test_only_the_programs_own_codes_are_sent(capsys) -> None:
    with shown_output():
        print(HOSTILE, "a\tb")
        sys.stdout.writelines(["\x1b[1m\n", "line\n"])
        replace_line(f"{HOSTILE}\n")
        control("\x1b[2A", sys.stdout)
    captured = capsys.readouterr()
    assert captured.out == f"{visible(HOSTILE)} a\tb\n\\x1b[1m\nline\n\x1b[2A"
    assert captured.err == f"\r\x1b[K{visible(HOSTILE)}\\x0a"
    control("\x1b[1m", sys.stdout)
    assert capsys.readouterr().out == "\x1b[1m"


def obeyed(text: str) -> set[str]:
    return {c for c in text if c not in "\n\t" and visible(c) != c}


def test_no_verb_sends_the_escapes_of_a_description(tmp_path: Path, capsys) -> None:
    """XML has no bytes below space, but those between 0x80 and 0x9f, which do the same."""
    hostile = "\x9b2J\x9d0;title\x9c\u202e"
    path = tmp_path / "robot.urdf"
    path.write_text(robot(f"r{hostile}\n0 OK", (f"foot{hostile}", "b")), encoding="utf-8")
    foot = f"foot{hostile}"
    for argv in (
        ["inspect", str(path)],
        ["inspect", str(path), "--json"],
        ["config", str(path)],
        ["config", str(path), "--json"],
        ["compute", str(path), "--contact", foot],
        ["compute", str(path), "--contact", foot, "--json"],
        ["compute", str(path), "--contact", "foo"],
        ["compute", str(path), "--contact", foot, "--q", f"{hostile}=1"],
        ["compare", str(path), "--contact", foot, "--calls", "1"],
        ["export", str(path), "--contact", foot, "-o", str(tmp_path / "a.o"), "--name", hostile],
        ["export", str(path), "--contact", foot, "-o", str(tmp_path / "a.o")],
        ["rotors", str(path), "--contact", foot],
        ["bag", f"{tmp_path}/{hostile}.mcap", "-o", str(tmp_path / "out")],
    ):
        main(argv)
        captured = capsys.readouterr()
        assert captured.out or captured.err
        assert not obeyed(captured.out + captured.err), argv
        assert "\n0 OK" not in captured.out
        if "--json" in argv:
            json.loads(captured.out)
    with pytest.raises(SystemExit):
        main([f"compu{hostile}"])
    captured = capsys.readouterr()
    assert not obeyed(captured.err) and captured.err.count("\n") == 1


def test_names_in_errors_are_shown() -> None:
    assert not obeyed(unknown("frame", HOSTILE, [HOSTILE, "foot"]))
