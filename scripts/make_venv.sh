#!/bin/sh
# Usage: make_venv.sh FOLDER
#
# Makes a virtual environment for this project. Before that it checks all that the set-up
# needs and cannot install by itself, and names what is missing with the command that
# installs it. PYTHON selects the interpreter; by default the first fitting one is taken.
set -eu

folder=$1
# The ROS 2 wheels exist for these.
supported="3.10 3.11 3.12 3.13 3.14"

missing=""
packages=""

lacks() { # what package...
    missing="$missing
  - $1"
    shift
    packages="$packages $*"
}

version_of() { # interpreter; prints nothing if it does not run
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || :
}

is_supported() { # version
    case " $supported " in *" $1 "*) [ -n "$1" ] ;; *) false ;; esac
}

has_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

has_headers() {
    "$1" -c '
import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))'
}

# The first that has everything; failing that, the first of a supported version.
python=""
for candidate in ${PYTHON:-python3 python3.12 python3.11 python3.13 python3.14 python3.10}; do
    is_supported "$(version_of "$candidate")" || continue
    if has_venv "$candidate" && has_headers "$candidate"; then
        python=$candidate
        break
    fi
    python=${python:-$candidate}
done

if [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ]; then
    echo "The ROS 2 wheels that this set-up installs exist for Linux on x86-64 only, and this is" \
        "$(uname -s) on $(uname -m). With a ROS 2 distribution, build with colcon: see README.md." >&2
    exit 1
fi

if [ -z "$python" ]; then
    tried=${PYTHON:-python3}
    found=$(version_of "$tried")
    lacks "Python, one of $supported ($tried is ${found:-not there})" \
        python3 python3-venv python3-dev
else
    # Debian and Ubuntu name the packages of their own Python without a version.
    name=python$(version_of "$python")
    [ "$(version_of /usr/bin/python3)" = "$(version_of "$python")" ] && name=python3
    has_venv "$python" || lacks "the module venv of $python" "$name-venv"
    has_headers "$python" || lacks "the C headers of $python (Python.h)" "$name-dev"
fi
command -v "${CC:-gcc}" >/dev/null || lacks "a C compiler (${CC:-gcc})" gcc
command -v "${CXX:-g++}" >/dev/null || lacks "a C++ compiler (${CXX:-g++})" g++

if [ -n "$missing" ]; then
    cat >&2 <<MESSAGE
The set-up needs, and does not find:$missing
On Debian and Ubuntu this installs it:

    sudo apt install$packages

MESSAGE
    if [ -z "$python" ] && [ -n "$found" ]; then
        echo "If that Python is of another version too: \`PYTHON=/path/to/python3.12 make ...\`" \
            "takes any other." >&2
    fi
    exit 1
fi

echo "Virtual environment: $folder ($("$python" --version), $(command -v "$python"))"
rm -rf "$folder"
"$python" -m venv "$folder"
