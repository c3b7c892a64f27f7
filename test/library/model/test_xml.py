"""Broken and hostile XML: nothing but a RobotError may come out."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hanging import HANG_S
from hypothesis import given, settings
from hypothesis import strategies as st
from urdf_text import joint, link, robot_xml

from delassus.errors import RobotError
from delassus.model import Robot
from delassus.model.reading.xml import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_ELEMENTS,
    check_document,
    parse_xml,
)

SOUND = robot_xml(
    link("trunk"),
    link("thigh"),
    link("foot", ""),
    joint("hip", "trunk", "thigh", "revolute", '<axis xyz="0 1 0"/><limit lower="-1" upper="1"/>'),
    joint("sole", "thigh", "foot", "fixed", ""),
)


# --- sources ----------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["", "\ufeff", "\n  ", "\ufeff\n", "\n\ufeff"])
@pytest.mark.parametrize(
    "declaration", ["", '<?xml version="1.0"?>', '<?xml version="1.0" encoding="UTF-8"?>\n']
)
def test_reads_text_bytes_and_files(tmp_path: Path, before: str, declaration: str) -> None:
    text = before + declaration + "<!-- ö -->" + SOUND
    expected = Robot.from_urdf(SOUND).to_bytes()
    path = tmp_path / "robot.urdf"
    path.write_bytes(text.encode())
    for source in (text, text.encode(), path, str(path)):
        assert Robot.from_urdf(source).to_bytes() == expected


def test_encoding_declared_by_bytes_and_ignored_in_text() -> None:
    text = '<?xml version="1.0" encoding="ISO-8859-1"?>' + SOUND.replace("trunk", "größe")
    for source in (text, text.encode("latin-1")):
        assert "größe" in Robot.from_urdf(source).frames


DECODED = "broken XML at line|cannot be decoded"
EMPTY = "the URDF is empty: give a path, or XML"
URL = "is a URL of scheme '{}'; expected the path of a"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (SOUND.replace("trunk", "größe").encode("latin-1"), DECODED),
        *(
            (f'<?xml version="1.0" encoding="{encoding}"?>{SOUND}'.encode(), DECODED)
            for encoding in ("klingon", "utf-7", "shift_jis")
        ),
        (SOUND.replace("trunk", "\ud800"), DECODED),
        (SOUND.replace("trunk", "\0"), DECODED),
        *((source, EMPTY) for source in ("", " \n", "\ufeff", b"", b"  ")),
        (Path("empty.urdf"), "the URDF is empty"),
        (Path("nowhere.urdf"), "cannot read .*nowhere.urdf': No such file.*'<'"),
        ("nowhere.urdf", "cannot read .*nowhere.urdf': No such file.*'<'"),
        (Path(), "cannot read the URDF file .*: Is a directory"),
        ("robot\0.urdf", "neither a path nor XML: embedded null"),
        ("x" * 100_000, "cannot read the URDF file 'xxx"),
        (3, "given as a path, text or bytes, not as int"),
        ("ftp://a/b.urdf", URL.format("ftp")),
        (" file:///tmp/a.urdf", URL.format("file")),
        ("https://a.b/c", URL.format("https")),
    ],
)
def test_source_refused(
    source: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.urdf").touch()
    with pytest.raises(RobotError, match=words) as caught:
        Robot.from_urdf(source)
    assert len(str(caught.value)) < 500


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_unreadable_file_named(tmp_path: Path) -> None:
    path = tmp_path / "secret.urdf"
    path.write_text(SOUND)
    path.chmod(0)
    with pytest.raises(RobotError, match="cannot read .*secret.urdf': Permission denied"):
        Robot.from_urdf(path)


# --- hostile documents ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<robot name="r">\n<link name="a">\n</robot>', "line 3, column .*: mismatched tag"),
        ('<robot name="r">', "line 1, column .*: no element found"),
        (SOUND + SOUND, "line 1, .*: junk after document element"),
        ('<robot name="r">&x;</robot>', "line 1, .*: undefined entity"),
    ],
)
def test_place_of_broken_xml(text: str, words: str) -> None:
    with pytest.raises(RobotError, match=f"broken XML at {words}"):
        Robot.from_urdf(text)


def test_broken_file_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.urdf"
    for text, words in (
        ("<robot", "broken XML at line 1, column 1: unclosed token"),
        ("<!DOCTYPE robot><robot/>", "the XML declares a document type"),
        ("<a>" * 99, "the XML is nested too deeply at <a>"),
        ("", "the URDF is empty"),
    ):
        path.write_text(text)
        for source in (path, str(path)):
            with pytest.raises(RobotError, match=f"^{re.escape(str(path))}: {words}"):
                Robot.from_urdf(source)


BOMB = (
    "<!DOCTYPE robot [\n"
    '<!ENTITY a "aaaaaaaaaa">\n'
    + "".join(
        f'<!ENTITY {new} "{f"&{old};" * 10}">\n'
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + ']>\n<robot name="&i;"/>'
)


@pytest.mark.parametrize(
    "document",
    [
        BOMB,
        f'<!DOCTYPE robot [<!ENTITY a "{"a" * 1000}">]><robot name="{"&a;" * 1000}"/>',
        '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/hostname">]><robot name="r">&x;</robot>',
        '<!DOCTYPE robot SYSTEM "http://127.0.0.1:9/robot.dtd"><robot name="r"/>',
        '<!DOCTYPE robot [<!ENTITY % x SYSTEM "file:///etc/hostname"> %x;]><robot name="r"/>',
        '<!DOCTYPE robot><robot name="r"/>',
    ],
)
def test_document_type_and_entities_refused(document: str) -> None:
    for source in (document, document.encode()):
        with pytest.raises(RobotError, match="declares a document type .* are not accepted"):
            Robot.from_urdf(source)


def test_includes_are_not_followed() -> None:
    text = SOUND.replace(
        "</robot>",
        '<include xmlns="http://www.w3.org/2001/XInclude" href="file:///etc/hostname"/></robot>',
    )
    assert Robot.from_urdf(text).to_bytes() == Robot.from_urdf(SOUND).to_bytes()


def padded(size: int) -> str:
    """Return a sound URDF of exactly `size` bytes."""
    return SOUND + "<!--" + "x" * (size - len(SOUND) - 7) + "-->"


def test_accepts_the_size_bound_and_refuses_more(tmp_path: Path) -> None:
    path = tmp_path / "large.urdf"
    path.write_text(padded(MAX_BYTES), encoding="ascii")
    for source in (padded(MAX_BYTES), path):
        assert Robot.from_urdf(source).nq == 1
    path.write_text(padded(MAX_BYTES + 1), encoding="ascii")
    of_two_bytes = f"<!--{'ö' * (MAX_BYTES // 2)}-->{SOUND}"
    for too_large in (padded(MAX_BYTES + 1), padded(MAX_BYTES + 1).encode(), path, of_two_bytes):
        with pytest.raises(RobotError, match=f"the XML is larger than {MAX_BYTES} bytes"):
            Robot.from_urdf(too_large)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the URDF is empty"),
        (" \ufeff\n", "the URDF is empty"),
        (
            "robots/atlas.urdf",
            "^'robots/atlas.urdf' is not how XML starts; expected the text of a URDF, which "
            "starts with '<robot'. It looks like a path: give what the file contains, or "
            ".*_file:=PATH$",
        ),
        ("package://atlas/atlas.urdf", "It looks like a path"),
        ("nonsense", "^'nonsense' is not how XML starts; expected .* starts with '<robot'$"),
        ("a: 1.5\nb: <2", "^'a: 1.5..b: <2' is not how XML starts; expected .* '<robot'$"),
        (padded(MAX_BYTES + 1), "the XML is larger than"),
        (f"<!--{'ö' * (MAX_BYTES // 2)}-->", "the XML is larger than"),
        ("x" * MAX_BYTES, "'x{60}' is not how XML starts"),
    ],
)
def test_glance_refused(text: str, words: str) -> None:
    for source in (text, text.encode()):
        with pytest.raises(RobotError, match=words):
            check_document(source)
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(text.encode())


@pytest.mark.parametrize("text", [SOUND, f"\ufeff \n{SOUND}", "<robot", padded(MAX_BYTES)])
def test_glance_passed(text: str) -> None:
    for encoding in ("utf-8", "utf-16", "utf-16-be", "utf-16-le"):
        check_document(text)
        if len(text) < MAX_BYTES // 4:
            check_document(text.encode(encoding))


def test_reads_utf_16() -> None:
    data = ('<?xml version="1.0" encoding="utf-16"?>' + SOUND).encode("utf-16")
    assert Robot.from_urdf(data).to_bytes() == Robot.from_urdf(SOUND).to_bytes()


def test_reads_no_more_of_a_large_file_than_it_must(tmp_path: Path) -> None:
    large = tmp_path / "large.urdf"
    with large.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(RobotError, match="the XML is larger than"):
        Robot.from_urdf(large)


@pytest.mark.parametrize("form", ["/dev/fd/{}", "/proc/self/fd/{}"])
def test_reads_from_a_pipe_of_the_shell(form: str) -> None:
    """As of ``<(xacro robot.urdf.xacro)``, which may write only after it is opened."""
    reader, writer = os.pipe()

    def write() -> None:
        with open(writer, "w", encoding="utf-8") as pipe:
            for part in (SOUND[:40], SOUND[40:] + " " * 200_000):
                time.sleep(0.2)  # the reader is at the pipe by then, whose parts come late
                pipe.write(part)
                pipe.flush()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        read = Robot.from_urdf(form.format(reader))
        assert read.joint_names == Robot.from_urdf(SOUND).joint_names
    finally:
        os.close(reader)
        thread.join(HANG_S)


def test_other_than_regular_file_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.urdf"
    os.mkfifo(pipe)
    for source in (pipe, str(pipe), "/dev/zero", "/dev/null"):
        with pytest.raises(RobotError, match=f"cannot read .*'{source}': Not a regular file"):
            Robot.from_urdf(source)


def nested(depth: int) -> str:
    """Return elements nested this deep."""
    return "<robot>" * depth + "</robot>" * depth


def test_accepts_the_depth_bound_and_refuses_more() -> None:
    assert parse_xml(nested(MAX_DEPTH)).tag == "robot"
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(RobotError, match="nested too deeply at <robot>: at most 64 levels"):
            parse_xml(nested(depth))


def test_accepts_the_element_bound_and_refuses_more() -> None:
    assert len(parse_xml("<r>" + "<a/>" * (MAX_ELEMENTS - 1) + "</r>")) == MAX_ELEMENTS - 1
    with pytest.raises(RobotError, match="too many elements: at most 100000 are accepted"):
        parse_xml("<r>" + "<a/>" * MAX_ELEMENTS + "</r>")


# --- fuzzing ----------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        "<", ">", "/>", '"', "&", "\0", "\ud800", "ö", " ", "nan", "-inf", "1e999", "1e-320", "-1",
        "0", "9" * 400, "1e9", "<link/>", "<joint/>", 'type="ball"', "<!DOCTYPE a>", "<![CDATA[",
        "<origin/>", "<inertial>", "</inertial>", '<link name="trunk"/>', 'xyz=""', "<mimic/>",
        "<!--", "]]>", "<?xml?>", 'xmlns="u"', "trunk", "thigh", "foot", "floating", "planar",
    ]
)  # fmt: skip
WORDS = [
    "trunk", "thigh", "foot", "hip", "sole", "revolute", "fixed", "0.1", "1.5", "0.02", "-1",
    "<link", "<joint", "</robot>", "<origin", "<axis", "<mass", "<inertia ", "name", "value",
    "parent", "child", "limit", "/>", '"',
]  # fmt: skip
EDIT = st.one_of(
    st.tuples(st.just("insert"), st.integers(0, len(SOUND)), PIECES),
    st.tuples(st.just("delete"), st.integers(0, len(SOUND)), st.integers(1, 80)),
    st.tuples(st.just("copy"), st.integers(0, len(SOUND)), st.integers(1, 400)),
    st.tuples(st.just("replace"), st.sampled_from(WORDS), PIECES),
    st.tuples(st.just("swap"), st.sampled_from(WORDS), st.sampled_from(WORDS)),
)


def mutate(text: str, edits: list[tuple[str, object, object]]) -> str:
    """Apply the edits in order."""
    for what, where, new in edits:
        if what == "insert":
            text = f"{text[:where]}{new}{text[where:]}"
        elif what == "delete":
            text = text[:where] + text[where + new :]
        elif what == "copy":
            text = text[:where] + text[where : where + new] + text[where:]
        elif what == "replace":
            text = text.replace(where, new, 1)
        else:
            text = text.replace(where, "\1").replace(new, where).replace("\1", new)
    return text


@pytest.mark.filterwarnings("error")
@settings(max_examples=400)
@given(st.lists(EDIT, min_size=1, max_size=4), st.sampled_from(["floating", "fixed"]))
def test_a_mutated_urdf_gives_a_robot_or_a_robot_error(edits, base) -> None:
    text = mutate(SOUND, edits)
    for source in (text, text.encode("utf-8", "surrogatepass")):
        # Text that no longer starts with an element would be a path.
        if isinstance(source, str) and not source.lstrip().startswith("<"):
            continue
        try:
            robot = Robot.from_urdf(source, base)
        except RobotError as error:
            assert str(error)
        else:
            assert isinstance(robot, Robot)


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(document: bytes) -> None:
    for source in (document, b"<" + document, b"<robot name='r'>" + document):
        with pytest.raises(RobotError):
            Robot.from_urdf(source)
