"""MJCF of which MuJoCo would make a model without end: refused in words, before MuJoCo begins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from little_memory import run

from delassus import Robot
from delassus.errors import RobotError
from delassus.model.reading.mjcf_size import MAX_BODIES, check_size

pytestmark = pytest.mark.needs("mujoco")

BODY = '<body><joint axis="0 0 1"/><geom size=".1"/></body>'


def model(content: str, before: str = "") -> str:
    return f"<mujoco>{before}<worldbody>{content}</worldbody></mujoco>"


def repeated(count: str, content: str = BODY) -> str:
    return f'<replicate count="{count}" offset=".1 0 0">{content}</replicate>'


HUGE = {
    "10001 bodies": model(BODY * 20_000),
    "100001 elements": model(f"<body>{'<geom/>' * 100_000}</body>"),
    "10000003 elements": model(repeated("10000000")),
    "1001003 elements": model(repeated("1e3", repeated("1e3", "<site/>"))),
    "50003 bodies": model("<body/>" * 3 + repeated("50000", "<body/>")),
    "inf elements": model(repeated("inf")),
    "1000000 bodies": model('<composite type="cable" count="100 100 100"/>'),
    "8000001 bodies": model('<body><flexcomp name="f" type="grid" count="200 200 200"/></body>'),
    "10000000000 numbers of a <hfield>": model(
        BODY, '<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>'
    ),
    "1000000000000 numbers of a <texture>": model(
        BODY, '<asset><texture type="2d" builtin="flat" width="1000000" height="1e6"/></asset>'
    ),
    "1000000000 nkey": model(BODY, '<size nkey="1000000000"/>'),
    "100000000 nuser_body": model(BODY, '<size nuser_body="100000000"/>'),
    "<!DOCTYPE": f"<!DOCTYPE a [<!ENTITY b 'c'>]>{model(BODY)}".replace("<!D", " <!D"),
    "<origin quat_xyzw=…>: MuJoCo drops this rotation unread; write Robot.from_urdf(…)":
        '<robot name="r"><link name="a"/><origin quat_xyzw="0 0 0 1"/></robot>',
    "is broken XML": model("<body>"),
    "is larger than 8388608 bytes": model(BODY, "<!-- " + "x" * 2**23 + "-->"),
}  # fmt: skip
"""Models by the words about them."""


def test_huge_models_refused_with_little_memory(tmp_path: Path) -> None:
    paths = []
    for number, text in enumerate(HUGE.values()):
        paths.append(tmp_path / f"{number}.xml")
        paths[-1].write_text(text)
    (tmp_path / "zeros.xml").touch()
    os.truncate(tmp_path / "zeros.xml", 20 << 30)
    paths.append(tmp_path / "zeros.xml")
    done = run(
        f"""
        import mujoco
        from delassus import Robot
        from delassus.errors import RobotError
        limit()
        for path in {[str(path) for path in paths]!r}:
            try:
                Robot.from_mujoco(path)
                print("read")
            except RobotError as error:
                print(error)
        """
    )
    assert done.returncode == 0, done.stderr
    for line, words in zip(done.stdout.splitlines(), [*HUGE, "larger than"], strict=True):
        assert words in line, line


def test_files_that_are_included_count(tmp_path: Path) -> None:
    (tmp_path / "many.xml").write_text(f"<mujocoinclude>{BODY * 6000}</mujocoinclude>")
    (tmp_path / "part.xml").write_text(model(BODY * 600))
    include = '<include file="many.xml"/>'
    attach = '<body name="b{0}"><attach model="part" body="x" prefix="p{0}"/></body>'
    for number, (text, words) in enumerate((
        (model(include), ""),
        (model(include * 2), "10001 bodies"),
        (model(repeated("5", include)), "10005 bodies"),
        (model("".join(map(attach.format, range(20))),
               '<asset><model name="part" file="part.xml"/></asset>'), "10001 bodies"),
        (model('<include file="self5.xml"/>'), ""),
        (model('<include file="self5.xml"/>'), "self5.xml includes itself: self5.xml -> self5"),
    )):  # fmt: skip
        path = tmp_path / f"self{number}.xml"
        path.write_text(text)
        if words:
            with pytest.raises(RobotError, match=words):
                check_size(path)
    check_size(tmp_path / "self0.xml")
    os.mkfifo(tmp_path / "pipe.xml")
    (tmp_path / "piped.xml").write_text(model('<include file="pipe.xml"/>'))
    with pytest.raises(RobotError, match="pipe.xml cannot be read"):
        check_size(tmp_path / "piped.xml")


def test_models_of_usual_size_read(tmp_path: Path) -> None:
    """Comments may have what XML forbids in them, and files that are not there are MuJoCo's."""
    comment = '<!-- ---- <replicate count="100000000"> ---- -->'
    text = model(comment + repeated("50"), '<size nkey="10" nuser_body="3" memory="10M"/>')
    robot = Robot.from_mujoco(text)
    assert len(robot.joints) == 50
    (tmp_path / "arm.xml").write_text(text)
    assert Robot.from_mujoco(tmp_path / "arm.xml").to_bytes() == robot.to_bytes()
    with pytest.raises(RobotError, match="MuJoCo cannot compile"):
        Robot.from_mujoco(model('<include file="absent.xml"/>'))
    urdf = "".join(f'<link name="l{k}"/>' for k in range(MAX_BODIES + 1))
    with pytest.raises(RobotError, match="10001 bodies or more; at most 10000"):
        Robot.from_mujoco(f"<robot name='r'>{urdf}</robot>")
