"""Task inertia under held contacts that leaves Python: an object file and a C header."""

from __future__ import annotations

from collections.abc import Iterable

from delassus.compiler.codegen.loops import modules_ir
from delassus.compiler.export import Export, Target, check_name, checked_target
from delassus.compiler.header import COMPILED_BY, comment, filled, framed
from delassus.contacts import row_scales
from delassus.model.spatial import CHARACTERISTIC_LENGTH_M
from delassus.solver.solution import task_names
from delassus.solver.solver import DelassusSolver
from delassus.task_inertia import projection


def export_task_space(
    solver: DelassusSolver,
    name: str,
    task: Iterable[str] | str,
    given: Iterable[str] | str = (),
    target: Target | None = None,
) -> Export:
    """Return the quantities of a task under held contacts as an object file with its header.

    The header's function ``NAME_task_space`` takes the outputs of the exported kernel of the same
    problem, all contacts in their order. The structural ranks are constants of the header. The
    object has no state, allocates nothing, takes no lock, and needs ``sqrt`` on processors without
    this instruction.

    Parameters
    ----------
    solver : solver of the problem.
    name : prefix of all symbols; a C identifier.
    task, given : names of the contacts that are the task, and of the held contacts.
    target : this machine if None.

    Raises
    ------
    InputError
        If the name is not a C identifier, a contact is unknown, is named twice, or is task and
        held, or the target is not known to work.
    """
    check_name(name)
    problem = solver.problem
    tasks, held = task_names(task, given, problem.contacts.names)
    resolved = checked_target(target)
    text = modules_ir((projection,), ["task_space"], prefix=f"{name}_any_")
    offsets, of_name = problem.contacts.row_offsets, problem.contacts.names.index
    rows, contacts = (
        [row for c in map(of_name, names) for row in range(offsets[c], offsets[c + 1])]
        for names in (tasks, held)
    )
    rank = solver.structural_rank(held)
    n = len(problem.velocities)
    t, c = len(rows), len(contacts)
    scales = row_scales(problem.contacts, CHARACTERISTIC_LENGTH_M).tolist()
    values = {
        "NAME": name, "UPPER": name.upper(), "T": t, "C": c, "N": n,
        "M": problem.contacts.rows, "RANK": rank,
        "TASK_RANK": solver.structural_rank((*held, *tasks)) - rank,
        "WORK": projection.work_size(n, t, c),
        "ROWS": ", ".join(map(str, rows + contacts)), "SCALES": ", ".join(map(repr, scales)),
        "INERTIA": projection.INERTIA, "JBAR": projection.JBAR, "BIAS": projection.BIAS,
        "NULL_SPACE": projection.NULL_SPACE, "FREE": projection.FREE,
        "NOT_FINITE": projection.NOT_FINITE,
    }  # fmt: skip
    named, contacts_held = (comment(", ".join(names)) or "none" for names in (tasks, held))
    about = [
        f"Task inertia under held contacts, {COMPILED_BY}.",
        f"Target {resolved.described}. Units: kg, m, s, N.",
        f"Task: {named}. Held contacts: {contacts_held}.",
    ]
    header = framed(f"{name.upper()}_TASK_SPACE_H", about, [filled(_BODY, values)])
    return Export(resolved.compiled(text, middle_end=True), header)


_BODY = """\
enum {
  @UPPER@_TASK_ROWS = @T@, /* rows of the task, t */
  @UPPER@_TASK_HELD_ROWS = @C@, /* rows of the held contacts */
  @UPPER@_TASK_HELD_RANK = @RANK@, /* structural rank of the held contacts */
  @UPPER@_TASK_RANK = @TASK_RANK@, /* structural rank of the task under them */
  @UPPER@_TASK_ALL_ROWS = @M@, /* rows of G with all contacts, m */
  @UPPER@_TASK_VELOCITIES = @N@, /* independent velocities, n */
  @UPPER@_TASK_WORK_SIZE = @WORK@, /* doubles of scratch */
  @UPPER@_TASK_INDEX_SIZE = @T@ + @C@ /* int64_t of scratch */
};

/* Results, to be added: inertia, always; jbar needs response; null_space needs J and response;
   bias_force needs response, h and JdotV; free needs a0. */
enum {
  @UPPER@_TASK_INERTIA = @INERTIA@,
  @UPPER@_TASK_JBAR = @JBAR@,
  @UPPER@_TASK_NULL_SPACE = @NULL_SPACE@,
  @UPPER@_TASK_BIAS_FORCE = @BIAS@,
  @UPPER@_TASK_FREE = @FREE@
};

/* Status: 0, or a result is not finite. */
enum { @UPPER@_TASK_NOT_FINITE = @NOT_FINITE@ };

int64_t @NAME@_any_task_space(
    int64_t wanted, int64_t m, int64_t n, int64_t t, int64_t c, int64_t contact_rank,
    int64_t task_rank, const int64_t *rows, const double *scales, const double *G, const double *J,
    const double *response, const double *h, const double *JdotV, const double *a0, double *held,
    double *inertia, double *jbar, double *null_space, double *bias_force,
    double *free_acceleration, double *work, int64_t *order);

/* Compute the wanted results and return the status.

   wanted      sum of the results above
   G, J, ...   outputs of the kernel: m x m, m x n, response (M^-1 J^T) n x m, h n, JdotV m, a0 m;
               those that no wanted result needs may be null
   held        t x t, accelerations of the task per task force while the contacts are held
   inertia     t x t, its inverse at the structural rank
   jbar        n x t, task accelerations to accelerations that keep the contacts; also for
               null_space and bias_force
   null_space  n x n, projection on motions that move neither task nor contacts
   bias_force  t, effects of velocity and gravity on the task
   free        t, accelerations of the task under the torques, without task forces
   work, order scratch of WORK_SIZE doubles and INDEX_SIZE int64_t, one of each per thread

   Re-entrant. Allocates nothing, takes no lock. */
static inline int64_t @NAME@_task_space(
    int64_t wanted, const double *G, const double *J, const double *response, const double *h,
    const double *JdotV, const double *a0, double *held, double *inertia, double *jbar,
    double *null_space, double *bias_force, double *free_acceleration, double *work,
    int64_t *order)
{
  static const int64_t rows[] = {@ROWS@};
  static const double scales[] = {@SCALES@};
  return @NAME@_any_task_space(
      wanted, @M@, @N@, @T@, @C@, @RANK@, @TASK_RANK@, rows, scales, G, J, response, h, JdotV, a0,
      held, inertia, jbar, null_space, bias_force, free_acceleration, work, order);
}"""
