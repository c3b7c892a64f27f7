"""Contact forces that leave Python: an object file and a C header, beside an exported kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from delassus.compiler.codegen.loops import modules_ir
from delassus.compiler.export import Export, Target, check_name, checked_target
from delassus.compiler.header import COMPILED_BY, constants, filled, framed
from delassus.contact_forces import iteration
from delassus.contact_forces.cones import CONVEX, COULOMB, INFO, SPEEDS
from delassus.contact_forces.machine_code import BUDGET, MODULES, SPEED, TOLERANCE
from delassus.contact_forces.rows import ConeRows
from delassus.contacts import LARGEST_FRICTION


def export_contact_forces(
    kinds: Sequence[str],
    name: str,
    *,
    dimensions: ArrayLike | None = None,
    normals: Sequence[str | ArrayLike] | None = None,
    target: Target | None = None,
) -> Export:
    """Return the solver of contact forces with friction as an object file with its header.

    The header's function ``NAME_contact_forces`` takes any of the contacts as the active ones. The
    object has no state, allocates nothing, takes no lock, and needs ``memset``, ``memcpy`` and,
    on processors without these instructions, ``sqrt`` and the compiler's own library.

    Parameters
    ----------
    kinds : per contact "point", "surface", "unilateral" or "bilateral".
    name : prefix of all symbols; a C identifier.
    dimensions : (2,) length and width of all surfaces, or (contacts, 2), m.
    normals : per contact the direction in which a point pushes, as in `Contact`; None for z.
    target : this machine if None.

    Raises
    ------
    InputError
        If the name is not a C identifier, a kind is unknown, a surface has no dimensions, or the
        target is not known to work.
    """
    check_name(name)
    rows = ConeRows.of(tuple(kinds), 0.0, dimensions, normals)
    resolved = checked_target(target)
    text = modules_ir(MODULES, ["solve"], prefix=f"{name}_forces_")
    about = [
        f"Contact forces with friction, {COMPILED_BY}.",
        f"Target {resolved.described}. Units: N, N m, kg, m, s.",
    ]
    body = [filled(_BODY, _values(rows, len(kinds), name))]
    header = framed(f"{name.upper()}_CONTACT_FORCES_H", about, body, ("stddef.h", "stdint.h"))
    return Export(resolved.compiled(text, middle_end=True), header)


def _values(rows: ConeRows, contacts: int, name: str) -> dict[str, object]:
    """Return values of the header's words."""
    cones = np.concatenate([[0], np.cumsum(np.bincount(rows.owner, minlength=contacts))])
    offsets = np.array(rows.offsets)
    first_rows = np.zeros(contacts + 1, np.int64)
    for c in range(contacts):
        own = rows.columns[rows.starts[offsets[c]] : rows.starts[offsets[c + 1]]]
        first_rows[c + 1] = first_rows[c] + len(np.unique(own))
    k, n, entries = rows.count, rows.size, len(rows.columns)
    arrays = {
        "FIRST_ROWS": ("int64_t", first_rows), "FIRST_CONES": ("int64_t", cones),
        "FIRST_CONE_ROWS": ("int64_t", offsets), "KINDS": ("int64_t", rows.cones),
        "STARTS": ("int64_t", rows.starts), "COLUMNS": ("int64_t", rows.columns),
        "WEIGHTS": ("double", rows.weights),
    }  # fmt: skip
    return {
        "NAME": name, "UPPER": name.upper(), "CONTACTS": contacts, "CONE_ROWS": k, "ROWS": n,
        "WORK": iteration.work_size(k, n) + 2 * len(rows.cones) + entries + 2 * k + n + SPEEDS,
        "INDICES": len(rows.cones) + k + 1 + entries, "BUDGET": BUDGET, "TOLERANCE": TOLERANCE,
        "COULOMB": COULOMB, "CONVEX": CONVEX, "INFO": INFO, "SPEEDS": SPEEDS, "SPEED": SPEED,
        "FRICTION": LARGEST_FRICTION, "TOLERABLE": iteration.MOST_TOLERANCE,
        **{status: getattr(iteration, status) for status in _STATUSES},
        **{
            word: constants(kind, f"{name}_forces_{word.lower()}", values.tolist())
            for word, (kind, values) in arrays.items()
        },
    }  # fmt: skip


_STATUSES = (
    "SOLVED", "INACCURATE", "FAILED", "INFEASIBLE", "NOT_FINITE", "REFUSED", "STRIKING", "JAMMED",
)  # fmt: skip
"""Names of :mod:`delassus.contact_forces.iteration`."""

_BODY = """\
#define @UPPER@_FORCES_CONTACTS @CONTACTS@ /* contacts */
#define @UPPER@_FORCES_ROWS @ROWS@ /* rows of G with all contacts, n */
#define @UPPER@_FORCES_CONE_ROWS @CONE_ROWS@ /* rows of the cones, k: corners of surfaces */
#define @UPPER@_FORCES_WORK_SIZE @WORK@ /* doubles of scratch, for any active contacts */
#define @UPPER@_FORCES_INDEX_SIZE @INDICES@ /* int64_t of scratch */
#define @UPPER@_FORCES_INFO_SIZE @INFO@ /* doubles about a solve */
#define @UPPER@_FORCES_BUDGET @BUDGET@ /* largest number of steps that a solve needs */
#define @UPPER@_FORCES_TOLERANCE @TOLERANCE@ /* residual, a share of the norm of a0 */
#define @UPPER@_FORCES_SPEED @SPEED@ /* m/s, of a contact that slides, leaves or strikes */

/* Laws. COULOMB: a sliding contact does not lift off. CONVEX: its convex neighbour. AUTO: another
   name of COULOMB. */
enum {
  @UPPER@_FORCES_COULOMB = @COULOMB@,
  @UPPER@_FORCES_CONVEX = @CONVEX@,
  @UPPER@_FORCES_AUTO = 2
};

/* Status. SOLVED: residual at most the tolerance. INACCURATE: at most 1e-6. FAILED: larger, the
   budget did not do. INFEASIBLE: contacts contradict each other. From NOT_FINITE on, forces and
   cone_forces are zero, accelerations NaN and the residual -1. NOT_FINITE: of G, a0 or velocities,
   or a force exceeds the range of doubles. REFUSED: an argument is out of its range. STRIKING: a
   contact approaches faster than its threshold, no finite force stops it. JAMMED: sliding contacts
   press themselves on (Painleve), and the law has no forces or is not known to have only one
   solution. */
enum {
  @UPPER@_FORCES_SOLVED = @SOLVED@,
  @UPPER@_FORCES_INACCURATE = @INACCURATE@,
  @UPPER@_FORCES_FAILED = @FAILED@,
  @UPPER@_FORCES_INFEASIBLE = @INFEASIBLE@,
  @UPPER@_FORCES_NOT_FINITE = @NOT_FINITE@,
  @UPPER@_FORCES_REFUSED = @REFUSED@,
  @UPPER@_FORCES_STRIKING = @STRIKING@,
  @UPPER@_FORCES_JAMMED = @JAMMED@
};

/* The solver for rows of any contacts; NAME_contact_forces below calls it. */
int64_t @NAME@_forces_solve(
    int64_t n, int64_t k, int64_t cones, int64_t law, int64_t budget, double tolerance,
    const int64_t *kinds, const double *mu, const double *restitution, const int64_t *starts,
    const int64_t *columns, const double *weights, const double *speeds, const double *G,
    const double *a0, const double *v, const double *R, double *f, double *forces,
    double *accelerations, double *ray, double *info, double *work);

/* Per contact its first row of G, first cone and first row of the cones; then the cones. */
@FIRST_ROWS@
@FIRST_CONES@
@FIRST_CONE_ROWS@
@KINDS@
@STARTS@
@COLUMNS@
@WEIGHTS@

/* Compute the forces of the active contacts under friction and return the status.

   active         count indices of contacts, in the order of their rows in G
   law            COULOMB or CONVEX
   budget         largest number of steps; BUDGET, or a smaller bound
   tolerance      residual at which forces are SOLVED; TOLERANCE, or a larger one up to @TOLERABLE@
   friction       count coefficients, 0 to @FRICTION@
   compliance     count numbers >= 0, m/s^2 per N, or null for rigid contacts
   restitution    at the velocity level count numbers from 0 to 1, or null for 0
   speeds         3 velocities in m/s, above which a contact slides, leaves and strikes, or null
                  for SPEED
   G, a0          n x n, symmetric, and n: the matrix of the active contacts and their
                  accelerations without contact forces, in contact axes the sum of the outputs a0
                  and turning; at the velocity level, velocities without impulses
   velocities     n: velocities of the contacts, which decide whether they slide, leave or strike,
                  or null for contacts at rest and at the velocity level
   cone_forces    k: forces to begin with, zeros or those of the previous instant; overwritten by
                  the result at the rows of the cones (of points, the forces)
   forces         n: the result at the rows of G
   accelerations  n: G forces + a0
   info           INFO_SIZE: numbers of sweeps, of Newton steps and of interior-point steps,
                  residual, law; then, where G is singular, 1 or 2 for forces divided by equal
                  compliance or otherwise, rank and number of the rows that push
   named          null, or count flags: 1 for contacts that contradict each other, strike or jam,
                  as the status has it; else for contacts whose forces could be divided otherwise
   work, indices  scratch of WORK_SIZE doubles and INDEX_SIZE int64_t, one of each per thread

   Re-entrant. Allocates nothing, takes no lock. */
static inline int64_t @NAME@_contact_forces(
    const int64_t *active, int64_t count, int64_t law, int64_t budget, double tolerance,
    const double *friction, const double *compliance, const double *restitution,
    const double *speeds, const double *G, const double *a0, const double *velocities,
    double *cone_forces, double *forces, double *accelerations, double *info, int64_t *named,
    double *work, int64_t *indices)
{
  int64_t n = 0, k = 0, cones = 0, entries = 0, i, j, e, status;
  int64_t *kinds = indices, *starts = kinds + @NAME@_forces_first_cones[@CONTACTS@];
  int64_t *columns = starts + @CONE_ROWS@ + 1;
  double *mu = work, *bounce = mu + @NAME@_forces_first_cones[@CONTACTS@];
  double *weights = bounce + @NAME@_forces_first_cones[@CONTACTS@];
  double *R = weights + @NAME@_forces_starts[@CONE_ROWS@], *ray = R + @CONE_ROWS@;
  double *v = ray + @CONE_ROWS@, *limits = v + @ROWS@;
  for (i = 0; i < count; ++i) {
    const int64_t c = active[i];
    for (j = @NAME@_forces_first_cones[c]; j < @NAME@_forces_first_cones[c + 1]; ++j) {
      kinds[cones] = @NAME@_forces_kinds[j];
      bounce[cones] = restitution == NULL ? 0.0 : restitution[i];
      mu[cones++] = friction[i];
    }
    for (j = @NAME@_forces_first_cone_rows[c]; j < @NAME@_forces_first_cone_rows[c + 1]; ++j) {
      R[k] = compliance == NULL ? 0.0 : compliance[i];
      starts[k++] = entries;
      for (e = @NAME@_forces_starts[j]; e < @NAME@_forces_starts[j + 1]; ++e) {
        columns[entries] = @NAME@_forces_columns[e] - @NAME@_forces_first_rows[c] + n;
        weights[entries++] = @NAME@_forces_weights[e];
      }
    }
    n += @NAME@_forces_first_rows[c + 1] - @NAME@_forces_first_rows[c];
  }
  starts[k] = entries;
  for (i = 0; i < n; ++i) v[i] = velocities == NULL ? 0.0 : velocities[i];
  for (i = 0; i < @SPEEDS@; ++i) limits[i] = speeds == NULL ? @UPPER@_FORCES_SPEED : speeds[i];
  status = @NAME@_forces_solve(
      n, k, cones, law == @UPPER@_FORCES_AUTO ? (int64_t)@UPPER@_FORCES_COULOMB : law, budget,
      tolerance, kinds, mu, bounce, starts, columns, weights, limits, G, a0, v, R, cone_forces,
      forces, accelerations, ray, info, limits + @SPEEDS@);
  for (i = k = 0; named != NULL && i < count; ++i) {
    const int64_t c = active[i];
    named[i] = 0;
    for (j = @NAME@_forces_first_cone_rows[c]; j < @NAME@_forces_first_cone_rows[c + 1]; ++j)
      if (ray[k++] != 0.0) named[i] = 1;
  }
  return status;
}"""
