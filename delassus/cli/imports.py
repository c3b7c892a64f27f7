"""The option ``--import`` of verbs that run algorithms: modules that register further ones."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from delassus import algorithms
from delassus.errors import AlgorithmError, InputError


def add_import(parser: argparse.ArgumentParser) -> None:
    """Add the option, which may be repeated."""
    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="Python module, or .py file, that registers algorithms; may be repeated",
    )


def import_all(options: argparse.Namespace) -> None:
    """Import the modules of the options; algorithms of the package are registered before.

    Raises
    ------
    InputError
        If there is no such module or file.
    AlgorithmError
        If a module raises; has the module's name and the error.
    """
    for name in getattr(options, "imports", ()):
        algorithms.names()
        try:
            _imported(name)
        except InputError:
            raise
        except (Exception, SystemExit) as error:
            raise AlgorithmError(
                f"--import {name}: it raises {type(error).__name__}: {error}"
            ) from error


def _imported(name: str) -> ModuleType:
    if Path(name).suffix == ".py":
        return _from_file(Path(name))
    # Programs that pip installs do not look in the present folder. Last: a file there does not
    # replace a module of the standard library.
    sys.path.append("")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0] and error.name != name:
            raise
        raise InputError(
            f"--import {name}: no module of this name is installed or in {Path.cwd()}; a file is "
            "named by its path, as my_algorithm.py"
        ) from error
    finally:
        sys.path.remove("")


def _from_file(path: Path) -> ModuleType:
    """Return the module of one file, under a name that no import statement can have."""
    if not path.is_file():
        raise InputError(f"--import {path}: there is no such file")
    # The part of a name before a dot would be a package.
    name = str(path.resolve()).replace(".", "_")
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None and spec.loader is not None  # it has the suffix of a source
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
