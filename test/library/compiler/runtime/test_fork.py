"""Children that are forked while another thread compiles can compile as well."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

FORKS = 12
LIMIT_S = 60
"""After so long a child is taken to hang [s]; it needs some milliseconds."""

PROGRAM = """
    import os, signal, sys, threading
    from delassus import algorithms
    from delassus.compiler.runtime import jit

    one = "define i32 @f() {{\\n  ret i32 7\\n}}\\n"
    many = "".join(
        f"define i32 @f{{k}}(i32 %x) {{{{\\n  %y = mul i32 %x, {{k}}\\n  ret i32 %y\\n}}}}\\n"
        for k in range(500)
    )
    begun, ending, compiled = threading.Event(), threading.Event(), []

    def compile_on():
        while not ending.is_set():
            compiled.append(len(jit.compile_ir(many)))
            {also}
            begun.set()

    thread = threading.Thread(target=compile_on)
    thread.start()
    begun.wait()
    statuses = []
    for _ in range({forks}):
        child = os.fork()
        if not child:
            signal.alarm({limit})
            loaded = jit.LoadedCode(jit.compile_ir(one))
            os._exit(0 if loaded.address("f") and algorithms.names() else 1)
        statuses.append(os.waitpid(child, 0)[1])
        if statuses[-1]:
            break
    ending.set()
    thread.join()
    print(statuses, len(compiled) > 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("also", ["pass", "algorithms.names()"])
def test_children_of_a_process_that_compiles_do_not_hang(also: str) -> None:
    program = textwrap.dedent(PROGRAM).format(forks=FORKS, limit=LIMIT_S, also=also)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        timeout=4 * LIMIT_S,
    )  # fmt: skip
    assert done.stdout == f"{[0] * FORKS} True\n", done.stderr


def test_a_handler_of_a_signal_that_forks_while_code_is_compiled() -> None:
    """It interrupts the very thread that holds the lock."""
    program = """
        import os, signal
        from delassus.compiler.runtime import jit

        def fork(*_):
            child = os.fork()
            if not child:
                os._exit(0)
            print(os.waitpid(child, 0)[1])

        signal.signal(signal.SIGUSR1, fork)
        with jit._lock:
            os.kill(os.getpid(), signal.SIGUSR1)
        print(len(jit.compile_ir("define void @f() {\\n  ret void\\n}\\n")) > 0)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True,
        check=False, timeout=LIMIT_S,
    )  # fmt: skip
    assert done.stdout == "0\nTrue\n", done.stderr


def test_the_lock_of_llvmlite_is_found() -> None:
    """It has no public name: where it is gone, children hang again."""
    from delassus.compiler.runtime import jit

    assert jit._llvm_lock is not None
