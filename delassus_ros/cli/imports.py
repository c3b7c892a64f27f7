"""The option ``--import`` of verbs that run algorithms: modules that register further ones."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from delassus_ros import algorithms
from delassus_ros.errors import AlgorithmError, InputError


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
        except Exception as error:
            raise AlgorithmError(
                f"--import {name}: it raises {type(error).__name__}: {error}"
            ) from error


def _imported(name: str) -> ModuleType:
    path = Path(name)
    if path.suffix == ".py":
        if not path.is_file():
            raise InputError(f"--import {name}: there is no such file")
        spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
        assert spec is not None and spec.loader is not None  # it has the suffix of a source
        module = importlib.util.module_from_spec(spec)
        before = sys.modules.get(path.stem)
        sys.modules[path.stem] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            # As Python leaves no module that raises.
            del sys.modules[path.stem]
            if before is not None:
                sys.modules[path.stem] = before
            raise
        return module
    # Programs that pip installs do not look in the present folder.
    sys.path.insert(0, "")
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
