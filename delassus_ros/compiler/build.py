"""From (problem, algorithm) to a kernel: from the cache, or traced, compiled and checked."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import time
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import numpy as np

import delassus_ros
from delassus_ros.algorithms.base import Algorithm, NumericAlgorithm, Status, TracedAlgorithm
from delassus_ros.algorithms.outputs import evaluate
from delassus_ros.compiler import batch, cache, emit
from delassus_ros.compiler.batch_kernel import BatchKernel
from delassus_ros.compiler.jit import compile_ir, host_identity
from delassus_ros.compiler.kernel import Array, CompiledKernel, Kernel, NumericKernel
from delassus_ros.compiler.schedule import program_of, scalar_program
from delassus_ros.compiler.trace import OperationCount, trace
from delassus_ros.errors import AlgorithmError, CompilerError, NumericalError
from delassus_ros.problem import Port, Problem

_log = logging.getLogger(__name__)
_REPLAYED = 3
"""Input/output pairs kept with a cached kernel and replayed when it is loaded."""
_SELF_CHECK = 1e-8
"""Largest relative difference of a fresh kernel from its algorithm on floats. It is far above
rounding, to allow for badly conditioned robots, and far below any error of code generation."""


def kernel_for(problem: Problem, algorithm: Algorithm, use_cache: bool = True) -> Kernel:
    """Return the kernel of `algorithm` for `problem`.

    Parameters
    ----------
    use_cache : read and write the disk cache; off, the kernel is always compiled.

    Raises
    ------
    AlgorithmError
        If the algorithm refuses the problem; the message is its reason.
    CompilerError
        If the compiled kernel differs from the algorithm run on floats, or LLVM fails.
    """
    reason = algorithm.supports(problem)
    if reason is not None:
        raise AlgorithmError(f"algorithm {algorithm.name!r} cannot solve this problem: {reason}")
    if isinstance(algorithm, NumericAlgorithm):
        return NumericKernel(problem, algorithm)
    if not isinstance(algorithm, TracedAlgorithm):
        raise AlgorithmError(
            f"algorithm {algorithm.name!r} must be a TracedAlgorithm or a NumericAlgorithm"
        )
    key = _key(problem, algorithm) if use_cache else None
    if key is not None:
        payload = cache.load(key)
        if payload is not None:
            try:
                return kernel_from(problem, payload)
            except CompilerError as error:
                _log.warning("cached kernel of %s compiled anew: %s", algorithm.name, error)
    kernel = _build(problem, algorithm)
    if key is not None:
        cache.store(key, _serialized(kernel, problem))
    return kernel


def batch_kernel_for(
    problem: Problem, algorithm: TracedAlgorithm, use_cache: bool = True
) -> BatchKernel:
    """Return the batch kernel of `algorithm` for `problem`; see :func:`kernel_for`."""
    key = _key(problem, algorithm) if use_cache else None
    key = None if key is None else f"{key}-batch"
    payload = None if key is None else cache.load(key)
    if payload is not None:
        try:
            head, unique, code = cache.unpack(payload)
            return BatchKernel(
                code, unique=np.frombuffer(unique, dtype=np.int64), **json.loads(head)
            )
        except (ValueError, TypeError, CompilerError) as error:
            _log.warning("cached batch kernel of %s compiled anew: %s", algorithm.name, error)
    traced = trace(problem, algorithm)
    program = scalar_program(traced, checked_positions(problem), block=1)
    inputs = sum(port.size for port in problem.inputs)
    module = batch.module(program, inputs, batch.host_width())
    kernel = BatchKernel(
        compile_ir(module.ir), module.width, np.array(module.unique, np.int64), module.work_size
    )
    if key is not None:
        head = json.dumps({"width": kernel.width, "work_size": kernel.work_size}).encode()
        cache.store(key, cache.pack(head, kernel.unique.tobytes(), kernel.code))
    return kernel


def serialized_kernel(problem: Problem, algorithm: TracedAlgorithm) -> bytes:
    """Return a compiled kernel as bytes, for :func:`kernel_from` in another process."""
    kernel = kernel_for(problem, algorithm)
    if not isinstance(kernel, CompiledKernel):
        raise CompilerError(f"the kernel of {algorithm.name!r} is not machine code")
    return _serialized(kernel, problem)


def kernel_from(problem: Problem, payload: bytes) -> CompiledKernel:
    """Return the kernel of a payload of :func:`serialized_kernel`, after replaying its pairs.

    Raises
    ------
    CompilerError
        If the payload is damaged, of another problem, or does not reproduce its stored
        results. It is machine code: load only what this user's own processes wrote.
    """
    try:
        digest, operations, code, *pairs = cache.unpack(payload)
        if len(pairs) != _REPLAYED:
            raise ValueError(f"{len(pairs)} stored results, expected {_REPLAYED}")
        if digest != hashlib.sha256(problem.canonical_bytes).digest():
            raise CompilerError("the compiled kernel is that of another problem")
        kernel = CompiledKernel(problem, code, OperationCount(**json.loads(operations)))
    except (ValueError, TypeError) as error:
        raise CompilerError(f"the compiled kernel is damaged: {error}") from error
    for seed, pair in enumerate(pairs, start=1):
        status, outputs = _run(kernel, sample_inputs(kernel.inputs, problem, seed))
        if status.to_bytes(4, "little") + _joined(kernel.outputs, outputs) != pair:
            raise CompilerError("the compiled kernel does not reproduce its stored results")
    return kernel


def _build(problem: Problem, algorithm: TracedAlgorithm) -> CompiledKernel:
    start = time.perf_counter()
    traced = trace(problem, algorithm)
    program = program_of(problem, traced, checked_positions(problem))
    code = compile_ir(emit.module(program))
    kernel = CompiledKernel(problem, code, traced.operations)
    _check_against_floats(problem, algorithm, kernel)
    _log.info(
        "compiled %s for %s in %.2f s: %s",
        algorithm.name, problem.robot.name, time.perf_counter() - start, kernel.operations,
    )  # fmt: skip
    return kernel


def checked_positions(problem: Problem) -> list[int]:
    """Return the positions of G's diagonal in the output block; it bounds all of G."""
    positions, start = [], 0
    for port in problem.outputs:
        if port.name == "G":
            positions += [start + k * (port.shape[0] + 1) for k in range(port.shape[0])]
        start += port.size
    return positions


def sample_inputs(ports: tuple[Port, ...], problem: Problem, seed: int) -> dict[str, Array]:
    """Return random inputs that make sense: joints within ±π, unit quaternions."""
    rng = np.random.default_rng(seed)
    inputs = {port.name: rng.uniform(-np.pi, np.pi, port.shape) for port in ports}
    if "base_orientation" in inputs:
        inputs["base_orientation"] /= np.linalg.norm(inputs["base_orientation"])
    robot = problem.robot
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        if joint.kind.nq == 7:
            quaternion = inputs["q"][offset + 3 : offset + 7]
            quaternion /= np.linalg.norm(quaternion)
    return inputs


def _check_against_floats(
    problem: Problem, algorithm: TracedAlgorithm, kernel: CompiledKernel
) -> None:
    """Compare a fresh kernel with its algorithm run on floats, at one configuration."""
    inputs = sample_inputs(kernel.inputs, problem, seed=0)
    try:
        expected = evaluate(problem, algorithm, {k: v.tolist() for k, v in inputs.items()})
    except NumericalError:
        # Not positive definite at this configuration: the kernel has to notice too.
        status, _ = _run(kernel, inputs)
        if status == Status.OK:
            raise CompilerError(
                f"kernel of {algorithm.name!r} reports success where the algorithm fails"
            ) from None
        return
    status, outputs = _run(kernel, inputs)
    for port in kernel.outputs:
        reference = np.asarray(expected[port.name], dtype=np.float64)
        error = np.linalg.norm(outputs[port.name] - reference)
        if status != Status.OK or not error <= _SELF_CHECK * np.linalg.norm(reference):
            raise CompilerError(
                f"kernel of {algorithm.name!r} differs from the algorithm on floats: output "
                f"{port.name!r}, status {status}, difference {error:.1e}"
            )


def _run(kernel: CompiledKernel, inputs: dict[str, Array]) -> tuple[int, dict[str, Array]]:
    bound = kernel.bind()
    for name, values in inputs.items():
        bound.inputs[name][...] = values
    status = bound.run()
    return status, {name: values.copy() for name, values in bound.outputs.items()}


def _key(problem: Problem, algorithm: TracedAlgorithm) -> str | None:
    """Return the cache key, or None for an algorithm whose source cannot be read."""
    try:
        source = Path(inspect.getfile(type(algorithm))).read_bytes()
    except (OSError, TypeError):
        _log.info("algorithm %r has no source file; its kernel is not cached", algorithm.name)
        return None
    digest = hashlib.sha256()
    for part in (
        problem.canonical_bytes,
        f"{algorithm.name}\0{algorithm.version}".encode(),
        source,
        _package_source(),
        host_identity().encode(),
    ):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _package_source() -> bytes:
    """Return a hash of everything in this package that shapes a kernel."""
    root = Path(delassus_ros.__file__).parent
    files = [root / "contacts.py", root / "problem.py"]
    for part in ("model", "algorithms", "compiler"):
        files += sorted((root / part).glob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.digest()


def _serialized(kernel: CompiledKernel, problem: Problem) -> bytes:
    """Return the kernel with its problem's hash before it and the pairs to replay after it."""
    pairs = []
    for seed in range(1, 1 + _REPLAYED):
        inputs = sample_inputs(kernel.inputs, problem, seed)
        status, outputs = _run(kernel, inputs)
        pairs.append(status.to_bytes(4, "little") + _joined(kernel.outputs, outputs))
    operations = json.dumps(asdict(kernel.operations)).encode()
    digest = hashlib.sha256(problem.canonical_bytes).digest()
    return cache.pack(digest, operations, kernel.code, *pairs)


def _joined(ports: tuple[Port, ...], arrays: dict[str, Array]) -> bytes:
    return b"".join(arrays[port.name].tobytes() for port in ports)
