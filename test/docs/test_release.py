"""A release: metadata, changelog and text of the tag, both packages side by side."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import site
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import delassus

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ("package.xml", "msg/package.xml")
TEXTS = (".html", ".md", ".py", ".rst")
"""Suffixes of pages and of sources with error messages."""
VERSION = delassus.__version__


def urls_of(manifest: str) -> dict[str, str]:
    root = ElementTree.parse(ROOT / manifest).getroot()
    return {str(url.get("type")): str(url.text) for url in root.iter("url")}


def test_the_manifests_have_the_addresses_of_the_project() -> None:
    found = [urls_of(manifest) for manifest in MANIFESTS]
    assert set(found[0]) == {"website", "repository", "bugtracker"} and found[0] == found[1]


def test_addresses_of_all_manifests_come_from_one_file(tmp_path: Path) -> None:
    script, settings = "scripts/addresses.py", "packaging/addresses.ini"
    manifests = [*MANIFESTS, "msg/pyproject.toml", "packaging/library/pyproject.toml",
                 "packaging/conda/recipe.yaml"]  # fmt: skip
    for name in (script, settings, *manifests):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def write() -> tuple[int, str]:
        command = [sys.executable, tmp_path / script]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    has_placeholders = ".example" in (ROOT / settings).read_text().partition("[addresses]")[2]
    status, words = write()
    assert (status, words.startswith("Placeholders")) == (int(has_placeholders), has_placeholders)
    for name in manifests:
        assert (tmp_path / name).read_bytes() == (ROOT / name).read_bytes(), name
    # Other addresses replace all of the present ones.
    (tmp_path / settings).write_text(
        "[addresses]\nwebsite = https://a.test/docs\nrepository = https://b.test/c\n"
        "bugtracker = https://b.test/c/-/issues\nemail = d@e.test\n"
    )
    assert write() == (0, "")
    for name in manifests:
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "https://b.test/c" in text and ".example" not in text, name
        assert ("d@e.test" in text and "https://a.test/docs" in text) or "recipe" in name, name


def test_users_meet_no_placeholder() -> None:
    places = [ROOT / name for name in ("docs", "delassus", "delassus_ros", "examples", "msg")]
    files = [file for place in places for file in place.rglob("*") if file.suffix in TEXTS]
    assert len(files) > 500
    texts = {file: file.read_text(encoding="utf-8") for file in (*files, ROOT / "README.md")}
    assert not [file for file, text in texts.items() if "delassus-ros.example" in text]


@pytest.mark.parametrize("name", ["delassus_ros", "delassus_msgs"])
def test_the_installed_package_describes_itself(name: str) -> None:
    # Not the folder that a build leaves beside the sources, which names no requirements.
    installed = importlib.metadata.distributions(name=name, path=site.getsitepackages())
    metadata = next((found.metadata for found in installed if found.read_text("RECORD")), None)
    if metadata is None:
        pytest.skip(f"{name} is not installed by pip")
    urls = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL") or ())
    assert {key.lower(): url for key, url in urls.items()} == urls_of("package.xml")
    classifiers = metadata.get_all("Classifier") or []
    assert "License :: OSI Approved :: BSD License" in classifiers
    assert "Operating System :: POSIX :: Linux" in classifiers and metadata["Summary"]
    assert metadata["Description-Content-Type"].startswith("text/markdown")
    assert metadata["License"] == "BSD-3-Clause"
    assert "maintainers@" in metadata["Maintainer-email"]
    if name == "delassus_ros":
        assert "The Delassus matrix of your robot, live" in metadata.as_string()
        assert 'argcomplete>=2.0; extra == "completion"' in metadata.get_all("Requires-Dist")


@pytest.mark.parametrize("file", ["CHANGELOG.rst", "msg/CHANGELOG.rst"])
def test_the_changelog_has_the_version_with_a_date(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    found = re.findall(r"^(\d\S*) \((\d{4}-\d\d-\d\d)\)\n(-+)$", text, re.MULTILINE)
    assert VERSION in [version for version, _, _ in found]
    assert all(len(line) == len(f"{version} ({date})") for version, date, line in found)


def test_the_tag_has_the_version() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"git tag -a v{VERSION} -m 'Release {VERSION}, see CHANGELOG.rst'" in text


def test_packages_of_a_release_are_side_by_side(tmp_path: Path) -> None:
    """As colcon and bloom need them: they do not look inside a package for another."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no repository of git")
    command = [sys.executable, str(ROOT / "scripts" / "lay_out_release.py"), str(tmp_path / "r")]
    subprocess.run(command, check=True, capture_output=True)
    # An example in a package is none of the release: colcon and bloom do not look for it.
    found = (path.relative_to(tmp_path / "r") for path in tmp_path.rglob("package.xml"))
    manifests = sorted(path for path in found if "examples" not in path.parts)
    assert [str(path) for path in manifests] == [
        "delassus_msgs/package.xml", "delassus_ros/package.xml",
    ]  # fmt: skip
    for path, manifest in zip(manifests, reversed(MANIFESTS), strict=True):
        assert (tmp_path / "r" / path).read_bytes() == (ROOT / manifest).read_bytes()
        root = ElementTree.parse(tmp_path / "r" / path).getroot()
        assert root.findtext("name") == path.parts[0] and root.findtext("version") == VERSION
    assert (tmp_path / "r/delassus_ros/delassus_ros/__init__.py").is_file()
    assert (tmp_path / "r/delassus_msgs/CMakeLists.txt").is_file()
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 2 and "is not empty" in again.stderr


def test_colcon_finds_both_packages_side_by_side_and_one_of_nested(tmp_path: Path) -> None:
    """The reason for `--base-paths`, for `colcon_defaults.yaml` and for the script."""
    if shutil.which("colcon") is None or shutil.which("git") is None:
        pytest.skip("colcon or git is not installed")
    script = ROOT / "scripts" / "lay_out_release.py"
    subprocess.run([sys.executable, script, tmp_path / "src"], check=True, capture_output=True)

    def packages(folder: Path, *options: str) -> set[str]:
        command = ["colcon", "list", "--names-only", *options]
        environment = {**os.environ, "COLCON_HOME": str(tmp_path / "colcon")}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        return set(done.stdout.split())

    both = {"delassus_ros", "delassus_msgs"}
    assert packages(tmp_path) == both
    nested = tmp_path / "nested" / "src"
    shutil.copytree(tmp_path / "src" / "delassus_ros", nested / "delassus_ros")
    shutil.copytree(tmp_path / "src" / "delassus_msgs", nested / "delassus_ros" / "msg")
    assert packages(nested.parent) == {"delassus_ros"}
    assert packages(nested.parent, "--base-paths", "src", "src/delassus_ros/msg") == both
    shutil.copy(ROOT / "colcon_defaults.yaml", nested / "delassus_ros")
    assert packages(nested / "delassus_ros") == both


def test_the_demo_needs_two_groups_of_requirements() -> None:
    """What `make demo` does not need is installed by the commands that do."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")

    def installed(target: str) -> set[str]:
        command = ["make", "-n", "-B", "PYTHON=python-that-is-not-there", target]
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return set(re.findall(r"-r requirements/(\w+)\.txt", shown.stdout))

    base = {"ros", "sim"}
    assert installed("demo") == base
    assert installed("view") == {"view"}  # without ROS and its messages, most of the time
    assert installed("record") == base | {"recordings"}
    for target in ("walk", "balance", "arm", "estimate"):
        assert installed(target) == base | {"examples", "pinocchio"}, target
    assert {"test", "docs", "dev", "examples", "view"} < installed("test")
    assert "bench" in installed("bench") and "bench" not in installed("test")


@pytest.fixture(name="library", scope="module")
def make_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the library alone."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no repository of git")
    folder: Path = tmp_path_factory.mktemp("library") / "delassus"
    script = ROOT / "scripts" / "lay_out_release.py"
    subprocess.run([sys.executable, script, "--library", folder], check=True, capture_output=True)
    return folder


def test_the_library_needs_what_the_component_says_of_it(library: Path) -> None:
    """Dependencies and extras of the library stand in setup.py and requirements/, too."""
    text = (library / "pyproject.toml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^dependencies = \[(.*?)\]$", text, re.MULTILINE)
    setup = (ROOT / "setup.py").read_text(encoding="utf-8")
    needed = re.findall(r'"([^"]+)"', listed)
    assert len(needed) == 5 and all(f'"{each}"' in setup for each in needed)
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    of_conda = [line.strip(" -").replace(" ", "") for line in run.splitlines()]
    assert of_conda == ["python>=${{python_min}}", *needed]
    extras = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    found = re.findall(r"^(\w+) = \[(.*?)\]$", extras, re.MULTILINE | re.DOTALL)
    assert len(found) == 7
    for name, words in found:
        lines = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        assert re.findall(r'"([^"]+)"', words) == [
            line.partition("#")[0].strip() for line in lines if not line.startswith("#")
        ]


def test_a_wheel_of_the_library_computes_without_the_component(
    library: Path, tmp_path: Path
) -> None:
    pytest.importorskip("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*build, "--wheel-dir", tmp_path, library], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("delassus-*-py3-none-any.whl")
    shutil.unpack_archive(wheel, tmp_path / "site", "zip")
    (metadata,) = tmp_path.glob("site/delassus-*.dist-info/METADATA")
    text = metadata.read_text(encoding="utf-8")
    addresses = r"^(Project-URL|Maintainer-email): .*$"  # those of the repository of both packages
    assert len(re.findall(addresses, text, re.MULTILINE)) == 4
    text = re.sub(addresses, "", text, flags=re.MULTILINE)
    assert f"Version: {VERSION}" in text and not re.search(r"\bros", text, re.IGNORECASE)
    assert not list(tmp_path.glob("site/delassus_*"))
    code = (
        "import sys; sys.modules['delassus_ros'] = sys.modules['rclpy'] = None\n"
        "from delassus.cli.main import main\n"
        "sys.exit(main(['compute', 'quadruped', '--contact', 'LF_FOOT']))\n"
    )
    paths = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=paths, capture_output=True, text=True
    )
    assert run.returncode == 0 and "LF_FOOT" in run.stdout, run.stderr
