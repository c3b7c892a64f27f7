/* delassus_node in C on rcl alone: joint states and active contacts in, DelassusMatrix out, by an exported kernel.

   For robots without loops, matrices in contact axes or on a fixed base, and one publisher that sends all joints in
   each message. The messages are those of delassus_node, byte for byte but for compute_time and input_age.
   README.md has the commands, and lists the parts of delassus_node that this program lacks. */

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <delassus_msgs/msg/active_contacts.h>
#include <delassus_msgs/msg/delassus_matrix.h>
#include <delassus_msgs/msg/layout.h>
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rosidl_runtime_c/primitives_sequence_functions.h>
#include <rosidl_runtime_c/string_functions.h>
#include <sensor_msgs/msg/joint_state.h>

#include "node_data.h"
#include "robot.h"

/* LAPACK's eigenvalues of a symmetric matrix. Condition numbers are those of delassus_node to the last bit if it is
   the same library; the names are given at compile time, as they differ from library to library. */
#ifndef NODE_DSYEVD
#define NODE_DSYEVD dsyevd_
#define NODE_LAPACK_INT int32_t
#endif
void NODE_DSYEVD(const char *jobz, const char *uplo, const NODE_LAPACK_INT *n, double *a, const NODE_LAPACK_INT *lda,
                 double *w, double *work, const NODE_LAPACK_INT *lwork, NODE_LAPACK_INT *iwork,
                 const NODE_LAPACK_INT *liwork, NODE_LAPACK_INT *info);

typedef delassus_msgs__msg__ActiveContacts ActiveContacts;
typedef delassus_msgs__msg__DelassusMatrix DelassusMatrix;
typedef sensor_msgs__msg__JointState JointState;
#define REASON(name) ((uint64_t)delassus_msgs__msg__DelassusMatrix__REASON_##name)
#define CONTACT(name) delassus_msgs__msg__ActiveContacts__##name

enum { JOINTS = ROBOT_IN_Q_SIZE, ROWS = ROBOT_ROWS, CONTACTS = ROBOT_CONTACTS };
enum { MOST_NAMES = 4096 }; /* in a set of contacts */
_Static_assert(ROBOT_IN_SIZE == ROBOT_IN_Q_SIZE, "the kernel has inputs besides joint positions");
_Static_assert(ROBOT_OUT_SIZE == ROWS * ROWS, "the kernel has outputs besides G");
_Static_assert(sizeof node_lower == JOINTS * sizeof(double) && sizeof node_upper == sizeof node_lower &&
                   sizeof node_scales == ROWS * sizeof(double) &&
                   sizeof node_generic == sizeof(double) * NODE_GENERIC * ROWS * ROWS,
               "data/node_data.h is of another robot than data/robot.h");
static const double FARTHEST = 1e6;                /* rad or m: angles are rounded beyond */
static const double RANK_TOLERANCE = 1e-10;        /* of the largest eigenvalue */
static const double RANK_ROUNDING = 1e-13;         /* of the largest diagonal entry */
static const int64_t LONGEST_TRUST_NS = 1000000000; /* for which a publisher's last message is relied on */

/* ---- Time ---- */

static int64_t clock_ns(clockid_t clock) {
  struct timespec at;
  clock_gettime(clock, &at);
  return at.tv_sec * INT64_C(1000000000) + at.tv_nsec;
}

static int64_t stamp_ns(const builtin_interfaces__msg__Time *stamp) {
  return stamp->nanosec < 1000000000u ? stamp->sec * INT64_C(1000000000) + stamp->nanosec : 0;
}

static int64_t delay_ns(const rmw_message_info_t *info, int64_t now) {
  const int64_t sent = info->source_timestamp;
  return sent > 0 && now > sent ? now - sent : 0;
}

/* ---- Joint states ---- */

typedef enum { IGNORED, READY, REFUSED } Gate;
static struct {
  double q[JOINTS];
  Gate gate; /* of the joint state that waits for its matrix */
  int64_t stamp, last_stamp, whole_stamp, heard, begun;
  double age;
  uint64_t reasons;
} joints;

static Gate joint_status(Gate gate, int64_t stamp, int64_t now, uint64_t reasons) {
  joints.stamp = stamp > 0 ? stamp : 0;
  joints.age = stamp > 0 ? 1e-9 * (now - stamp) : NAN;
  joints.reasons = reasons;
  return gate;
}

/* Read a joint state: positions to q, and whether a matrix follows from them. */
static Gate read_joints(const JointState *state, int64_t now, int64_t delay) {
  const int64_t stamp = stamp_ns(&state->header.stamp);
  const size_t names = state->name.size;
  size_t places[JOINTS];
  int present = 0, twice = 0;
  for (int k = 0; k < JOINTS; ++k) {
    int found = 0;
    /* Most publishers send the joints in the robot's order. */
    if ((size_t)k < names && names == JOINTS && !strcmp(state->name.data[k].data, robot_joints[k])) {
      places[k] = (size_t)k;
      for (size_t i = 0; i < names; ++i) found += !strcmp(state->name.data[i].data, robot_joints[k]);
    } else {
      for (size_t i = 0; i < names; ++i)
        if (!strcmp(state->name.data[i].data, robot_joints[k])) places[k] = i, ++found;
    }
    present += found > 0, twice += found > 1;
  }
  if (names && !present) return IGNORED; /* of another robot */
  joints.heard = now - delay;
  if (!names) return joint_status(REFUSED, stamp, now, REASON(JOINT_MISSING));
  if (!state->position.size) return joint_status(REFUSED, stamp, now, REASON(JOINT_SIZE_MISMATCH));
  if (twice) return joint_status(REFUSED, stamp, now, REASON(JOINT_DUPLICATED));
  if (state->position.size != names) return joint_status(REFUSED, stamp, now, REASON(JOINT_SIZE_MISMATCH));
  if (present < JOINTS) return joint_status(REFUSED, stamp, now, REASON(JOINT_MISSING));
  uint64_t reasons = 0;
  for (int k = 0; k < JOINTS; ++k) {
    joints.q[k] = state->position.data[places[k]];
    if (!isfinite(joints.q[k])) return joint_status(REFUSED, stamp, now, REASON(JOINT_NOT_FINITE));
    if (joints.q[k] < node_lower[k] || joints.q[k] > node_upper[k]) reasons |= REASON(JOINT_OUTSIDE_LIMITS);
    if (fabs(joints.q[k]) > FARTHEST) reasons |= REASON(JOINT_FAR);
  }
  const int64_t before = joints.whole_stamp;
  joints.whole_stamp = stamp;
  if (0 < stamp && stamp < before) reasons |= REASON(STAMP_JUMPED_BACK);
  if (stamp <= 0) {
    reasons |= REASON(STAMP_INVALID);
    if (delay > NODE_INPUT_TIMEOUT_NS) return joint_status(REFUSED, 0, now, reasons | REASON(INPUT_STALE));
    return joint_status(READY, 0, now, reasons);
  }
  joints.last_stamp = stamp;
  if (now - stamp > NODE_INPUT_TIMEOUT_NS) return joint_status(REFUSED, stamp, now, reasons | REASON(INPUT_STALE));
  if (now - stamp < -NODE_MAX_SKEW_NS) reasons |= REASON(STAMP_IN_FUTURE);
  return joint_status(READY, stamp, now, reasons);
}

/* ---- Active contacts ---- */

static struct {
  bool known, degraded; /* whether there is a valid set, and whether it lacks rows */
  int active[CONTACTS], count;
  uint8_t status[CONTACTS];
  uint64_t reasons;
  int64_t stamp, taken, jumped, noted, sent, ahead; /* ns */
  builtin_interfaces__msg__Time told;
} contacts;

static bool contacts_within(double timeout, int64_t now) {
  int64_t from = contacts.sent;
  if (contacts.stamp > 0 && contacts.stamp < from) from = contacts.stamp;
  return now - from <= timeout;
}

static uint64_t contradiction(const ActiveContacts *set) {
  if (set->names.size != set->status.size) return REASON(CONTACTS_MALFORMED);
  for (size_t i = 0; i < set->status.size; ++i)
    if (set->status.data[i] > CONTACT(SLIPPING)) return REASON(CONTACTS_MALFORMED);
  /* The search for duplicates is quadratic, and the length comes from outside. */
  if (set->names.size > MOST_NAMES) return REASON(CONTACTS_MALFORMED);
  for (size_t i = 0; i < set->names.size; ++i)
    for (size_t j = 0; j < i; ++j)
      if (!strcmp(set->names.data[i].data, set->names.data[j].data)) return REASON(DUPLICATE_CONTACT);
  return 0;
}

/* Read a set of contacts; return whether the active ones changed. */
static bool read_contacts(const ActiveContacts *set, int64_t now, int64_t delay) {
  const int64_t stamp = stamp_ns(&set->header.stamp);
  contacts.told = set->header.stamp;
  if (0 < stamp && stamp < contacts.taken && contacts.taken <= now && contacts_within(LONGEST_TRUST_NS, now)) {
    contacts.jumped = contacts.taken - stamp, contacts.noted = now;
    return false; /* a newer set is in use */
  }
  contacts.stamp = stamp > 0 ? stamp : 0, contacts.ahead = contacts.stamp - now;
  contacts.sent = now - delay, contacts.noted = now;
  const uint64_t fault = contradiction(set);
  if (fault) {
    contacts.known = contacts.degraded = false;
    contacts.reasons = fault, contacts.stamp = contacts.taken = 0;
    return false;
  }
  const int64_t taken = contacts.taken;
  contacts.taken = contacts.stamp;
  contacts.jumped = 0 < contacts.stamp && contacts.stamp < taken ? taken - contacts.stamp : 0;
  int active[CONTACTS], count = 0, listed = 0, touching = 0;
  for (size_t i = 0; i < set->names.size; ++i) touching += set->status.data[i] >= CONTACT(ACTIVE);
  for (int c = 0; c < CONTACTS; ++c)
    for (size_t i = 0; i < set->names.size; ++i)
      if (!strcmp(set->names.data[i].data, robot_contacts[c])) {
        ++listed;
        if (set->status.data[i] >= CONTACT(ACTIVE)) contacts.status[count] = set->status.data[i], active[count++] = c;
      }
  contacts.degraded = count < touching;
  contacts.reasons = (size_t)listed < set->names.size ? REASON(UNKNOWN_CONTACT) : 0;
  const bool changed =
      !contacts.known || count != contacts.count || memcmp(active, contacts.active, sizeof(int) * (size_t)count);
  contacts.known = true, contacts.count = count;
  memcpy(contacts.active, active, sizeof active);
  return changed;
}

/* ---- Conditioning, as in delassus/conditioning/monitor.py ---- */

static struct {
  int rows[ROWS], size, structural_rank, state;
  double eigenvalues[ROWS], scaled[ROWS * ROWS], work[1 + 2 * ROWS + 64 * ROWS];
  NODE_LAPACK_INT iwork[ROWS + 1], lwork;
  double condition;
  int rank;
} monitor;

/* Rank of the active rows at a generic configuration: pivoted Cholesky factorisation. */
static int rank_at(const double *generic) {
  const int n = monitor.size;
  double rest[ROWS * ROWS], norms[ROWS], column[ROWS], noise = 0.0;
  for (int i = 0; i < ROWS; ++i) noise = fmax(noise, RANK_ROUNDING * generic[i * ROWS + i]);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) rest[i * n + j] = generic[monitor.rows[i] * ROWS + monitor.rows[j]];
    norms[i] = rest[i * n + i];
  }
  for (int rank = 0; rank < n; ++rank) {
    int pivot = 0;
    double best = 0.0;
    for (int i = 0; i < n; ++i) {
      const double left = rest[i * n + i], share = left > noise ? left / norms[i] : 0.0;
      if (share > best) best = share, pivot = i;
    }
    if (!(best > RANK_TOLERANCE)) return rank;
    const double root = sqrt(rest[pivot * n + pivot]);
    for (int j = 0; j < n; ++j) column[j] = rest[pivot * n + j] / root;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) rest[i * n + j] -= column[i] * column[j];
  }
  return n;
}

static void activate_monitor(void) {
  monitor.size = 0, monitor.structural_rank = 0, monitor.state = 0;
  for (int c = 0; c < contacts.count; ++c)
    for (int64_t row = robot_row_offsets[contacts.active[c]]; row < robot_row_offsets[contacts.active[c] + 1]; ++row)
      monitor.rows[monitor.size++] = (int)row;
  for (int k = 0; k < NODE_GENERIC && monitor.structural_rank < monitor.size; ++k) {
    const int rank = rank_at(node_generic + k * ROWS * ROWS);
    if (rank > monitor.structural_rank) monitor.structural_rank = rank;
  }
  const NODE_LAPACK_INT n = monitor.size, query = -1;
  NODE_LAPACK_INT info;
  if (!n) return;
  NODE_DSYEVD("N", "L", &n, monitor.scaled, &n, monitor.eigenvalues, monitor.work, &query, monitor.iwork, &query,
              &info);
  const double wanted = monitor.work[0], most = sizeof monitor.work / sizeof monitor.work[0];
  monitor.lwork = (NODE_LAPACK_INT)(wanted < most ? wanted : most);
}

/* Examine G of the active rows; the result is in `monitor` and goes into the message. */
static bool examine(const double *G, DelassusMatrix *message) {
  const NODE_LAPACK_INT n = monitor.size, liwork = ROWS + 1;
  NODE_LAPACK_INT info = 0;
  message->structural_rank = monitor.structural_rank;
  message->conditioning = delassus_msgs__msg__DelassusMatrix__CONDITIONING_UNKNOWN;
  message->condition = -1.0;
  message->rank = 0;
  if (!monitor.structural_rank) return true;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      monitor.scaled[i * n + j] =
          G[i * n + j] * (node_scales[monitor.rows[i]] * node_scales[monitor.rows[j]]);
  NODE_DSYEVD("N", "L", &n, monitor.scaled, &n, monitor.eigenvalues, monitor.work, &monitor.lwork, monitor.iwork,
              &liwork, &info);
  const double *values = monitor.eigenvalues, largest = values[n - 1];
  if (info || !isfinite(largest)) {
    message->rank = -1, monitor.state = 0;
    return false;
  }
  int rank = 0;
  for (int i = 0; i < n; ++i) rank += largest > 0 && values[i] > RANK_TOLERANCE * largest;
  if (rank > monitor.structural_rank) message->structural_rank = monitor.structural_rank = rank;
  const double smallest = values[n - monitor.structural_rank];
  double condition = INFINITY;
  if (rank == monitor.structural_rank && smallest > 0) condition = fmax(1.0, largest / smallest);
  const double weak = NODE_WEAK * (monitor.state >= 2 ? 1.0 / NODE_HYSTERESIS : 1.0);
  const double singular = NODE_SINGULAR * (monitor.state == 3 ? 1.0 / NODE_HYSTERESIS : 1.0);
  monitor.state = condition >= singular ? 3 : condition >= weak ? 2 : 1;
  message->conditioning = (uint8_t)monitor.state, message->rank = rank, message->condition = condition;
  return true;
}

/* ---- Messages ---- */

static DelassusMatrix valid, invalid;
static rcl_publisher_t matrices;
static uint64_t sequence;
static int64_t published; /* steady time of the last message [ns]; 0 before the first */
static double out[ROBOT_OUT_SIZE], work[ROBOT_WORK_SIZE + 1];

static void must(bool done, const char *what) {
  if (done) return;
  fprintf(stderr, "%s failed: %s\n", what, rcl_get_error_string().str);
  exit(1);
}

static void make_messages(void) {
  DelassusMatrix *both[] = {&valid, &invalid};
  for (int k = 0; k < 2; ++k) {
    must(delassus_msgs__msg__DelassusMatrix__init(both[k]), "memory");
    must(rosidl_runtime_c__String__assign(&both[k]->layout_id, NODE_LAYOUT_ID), "memory");
    must(rosidl_runtime_c__String__assign(&both[k]->header.frame_id, NODE_FRAME_ID), "memory");
    both[k]->axes = NODE_AXES;
  }
  must(rosidl_runtime_c__String__assign(&valid.algorithm, NODE_ALGORITHM), "memory");
  /* Sequences are made once for all contacts; their sizes change with the active ones. */
  must(rosidl_runtime_c__String__Sequence__init(&valid.contacts, CONTACTS), "memory");
  must(rosidl_runtime_c__String__Sequence__init(&valid.kinds, CONTACTS), "memory");
  must(rosidl_runtime_c__uint8__Sequence__init(&valid.status, CONTACTS), "memory");
  must(rosidl_runtime_c__uint32__Sequence__init(&valid.row_offsets, CONTACTS + 1), "memory");
  must(rosidl_runtime_c__double__Sequence__init(&valid.matrix, ROWS * ROWS), "memory");
}

/* Set the contacts of the next matrices. */
static void activate(void) {
  activate_monitor();
  uint32_t offset = 0;
  for (int c = 0; c < contacts.count; ++c) {
    const int contact = contacts.active[c];
    must(rosidl_runtime_c__String__assign(&valid.contacts.data[c], robot_contacts[contact]), "memory");
    must(rosidl_runtime_c__String__assign(&valid.kinds.data[c], node_kinds[contact]), "memory");
    valid.row_offsets.data[c] = offset;
    offset += (uint32_t)(robot_row_offsets[contact + 1] - robot_row_offsets[contact]);
  }
  valid.row_offsets.data[contacts.count] = offset;
  valid.contacts.size = valid.kinds.size = valid.status.size = (size_t)contacts.count;
  valid.row_offsets.size = (size_t)contacts.count + 1;
  valid.matrix.size = (size_t)offset * offset;
}

static void send(DelassusMatrix *message, uint64_t reasons) {
  message->header.stamp.sec = (int32_t)(joints.stamp / 1000000000);
  message->header.stamp.nanosec = (uint32_t)(joints.stamp % 1000000000);
  message->sequence = ++sequence;
  message->contacts_stamp = contacts.told;
  message->reasons = reasons;
  message->input_age = joints.age;
  if (rcl_publish(&matrices, message, NULL) != RCL_RET_OK) {
    fprintf(stderr, "a message was not published: %s\n", rcl_get_error_string().str);
    rcl_reset_error();
  }
  published = clock_ns(CLOCK_MONOTONIC);
}

/* Publish the answer to the present joint state, or INVALID with its reasons. */
static void answer(Gate gate, int64_t now) {
  uint64_t reasons = contacts.reasons | joints.reasons;
  bool missing = !contacts.known, doubtful = false;
  if (contacts.known && !contacts_within(NODE_CONTACTS_TIMEOUT_NS, now))
    reasons |= REASON(CONTACTS_STALE), missing = true;
  if (contacts.known && contacts.jumped && now - contacts.noted <= LONGEST_TRUST_NS)
    reasons |= REASON(STAMP_JUMPED_BACK), doubtful = true;
  if (contacts.known && contacts.ahead > NODE_MAX_SKEW_NS)
    reasons |= REASON(STAMP_IN_FUTURE), doubtful = true;
  if (missing || gate == REFUSED) {
    send(&invalid, reasons);
    return;
  }
  const int64_t began = clock_ns(CLOCK_MONOTONIC);
  const int32_t status = robot_kernel(joints.q, out, work);
  if (status != ROBOT_OK) {
    reasons |= status == ROBOT_TOO_FAR      ? REASON(JOINT_FAR)
               : status == ROBOT_NOT_FINITE ? REASON(RESULT_NOT_FINITE)
                                            : REASON(SOLVER_FAILED);
    send(&invalid, reasons);
    return;
  }
  int64_t rows[ROWS];
  for (int i = 0; i < monitor.size; ++i) rows[i] = monitor.rows[i];
  robot_slice(out + ROBOT_OUT_G, ROWS, rows, monitor.size, valid.matrix.data);
  valid.compute_time = 1e-9 * (clock_ns(CLOCK_MONOTONIC) - began);
  examine(valid.matrix.data, &valid);
  if (valid.conditioning >= delassus_msgs__msg__DelassusMatrix__CONDITIONING_WEAK)
    reasons |= REASON(ILL_CONDITIONED);
  memcpy(valid.status.data, contacts.status, (size_t)contacts.count);
  valid.validity = doubtful || contacts.degraded || joints.reasons
                       ? delassus_msgs__msg__DelassusMatrix__VALIDITY_DEGRADED
                       : delassus_msgs__msg__DelassusMatrix__VALIDITY_OK;
  send(&valid, reasons);
}

/* Publish INVALID while no joint state has come for long. */
static void watch(void) {
  const int64_t now = clock_ns(CLOCK_REALTIME);
  const int64_t since = clock_ns(CLOCK_MONOTONIC) - published;
  if (published && since <= 0.9 * NODE_PATIENCE_NS) return;
  const int64_t counted = joints.heard ? joints.heard : joints.begun;
  if (now - counted <= NODE_INPUT_TIMEOUT_NS) return;
  const uint64_t reason = joints.heard ? REASON(INPUT_STALE) : REASON(NO_JOINT_STATE);
  answer(joint_status(REFUSED, joints.last_stamp, now, reason), now);
}

/* ---- The node ---- */

static rcl_subscription_t joint_states, active_contacts;
static JointState *joint_state;
static ActiveContacts *contact_set;

static void take_contacts(void) {
  rmw_message_info_t info;
  while (rcl_take(&active_contacts, contact_set, &info, NULL) == RCL_RET_OK) {
    const int64_t now = clock_ns(CLOCK_REALTIME);
    if (read_contacts(contact_set, now, delay_ns(&info, now))) activate();
  }
  rcl_reset_error();
}

/* Read all joint states that wait, and answer the newest; earlier ones count as superseded. */
static void take_joints(void) {
  rmw_message_info_t info;
  Gate kept = IGNORED;
  int waited = 0;
  int64_t now = 0;
  while (rcl_take(&joint_states, joint_state, &info, NULL) == RCL_RET_OK) {
    now = clock_ns(CLOCK_REALTIME);
    const uint64_t jumped = kept == IGNORED ? 0 : joints.reasons & REASON(STAMP_JUMPED_BACK);
    const Gate gate = read_joints(joint_state, now, delay_ns(&info, now));
    if (gate == IGNORED) continue;
    if (waited++) ++sequence;
    joints.reasons |= jumped; /* a jump is reported once, and may be that of a superseded joint state */
    kept = gate;
  }
  rcl_reset_error();
  if (kept == IGNORED) return;
  if (waited > 1 && kept == READY) {
    now = clock_ns(CLOCK_REALTIME);
    kept = joint_status(READY, joints.stamp, now, joints.reasons);
    if (1e9 * joints.age > NODE_INPUT_TIMEOUT_NS) kept = REFUSED, joints.reasons |= REASON(INPUT_STALE);
  }
  answer(kept, now);
}

static volatile sig_atomic_t stopped;
static void stop(int number) { stopped = number; }

int main(int argc, char **argv) {
  signal(SIGINT, stop), signal(SIGTERM, stop);
  const rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t init = rcl_get_zero_initialized_init_options();
  rcl_context_t context = rcl_get_zero_initialized_context();
  must(rcl_init_options_init(&init, allocator) == RCL_RET_OK, "rcl_init_options_init");
  must(rcl_init(argc, (const char *const *)argv, &init, &context) == RCL_RET_OK, "rcl_init");
  rcl_node_t node = rcl_get_zero_initialized_node();
  const rcl_node_options_t node_options = rcl_node_get_default_options();
  must(rcl_node_init(&node, "delassus_node", "", &context, &node_options) == RCL_RET_OK, "rcl_node_init");

  rmw_qos_profile_t latched = rmw_qos_profile_default, newest = rmw_qos_profile_default;
  latched.depth = 1, latched.durability = RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL;
  newest.depth = 1000, newest.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;

  matrices = rcl_get_zero_initialized_publisher();
  rcl_publisher_t layouts = rcl_get_zero_initialized_publisher();
  rcl_publisher_options_t sends = rcl_publisher_get_default_options();
  must(rcl_publisher_init(&matrices, &node, ROSIDL_GET_MSG_TYPE_SUPPORT(delassus_msgs, msg, DelassusMatrix),
                          "~/delassus", &sends) == RCL_RET_OK, "publisher of matrices");
  sends.qos = latched;
  must(rcl_publisher_init(&layouts, &node, ROSIDL_GET_MSG_TYPE_SUPPORT(delassus_msgs, msg, Layout), "~/layout",
                          &sends) == RCL_RET_OK, "publisher of the layout");

  joint_states = active_contacts = rcl_get_zero_initialized_subscription();
  rcl_subscription_options_t receives = rcl_subscription_get_default_options();
  receives.qos = latched;
  must(rcl_subscription_init(&active_contacts, &node, ROSIDL_GET_MSG_TYPE_SUPPORT(delassus_msgs, msg, ActiveContacts),
                             "active_contacts", &receives) == RCL_RET_OK, "subscription of contacts");
  receives.qos = newest;
  must(rcl_subscription_init(&joint_states, &node, ROSIDL_GET_MSG_TYPE_SUPPORT(sensor_msgs, msg, JointState),
                             "joint_states", &receives) == RCL_RET_OK, "subscription of joint states");
  joint_state = sensor_msgs__msg__JointState__create(), contact_set = delassus_msgs__msg__ActiveContacts__create();
  must(joint_state && contact_set, "memory");
  make_messages();
  contacts.reasons = REASON(NO_CONTACTS_RECEIVED);
  joints.begun = clock_ns(CLOCK_REALTIME);

  /* The layout is serialized by prepare.py; its stamp, the first field, is that of this start. */
  static uint8_t bytes[sizeof node_layout];
  memcpy(bytes, node_layout, sizeof bytes);
  const int32_t seconds = (int32_t)(joints.begun / 1000000000), nanoseconds = (int32_t)(joints.begun % 1000000000);
  memcpy(bytes + 4, &seconds, 4), memcpy(bytes + 8, &nanoseconds, 4);
  rcl_serialized_message_t layout = {bytes, sizeof bytes, sizeof bytes, allocator};
  must(rcl_publish_serialized_message(&layouts, &layout, NULL) == RCL_RET_OK, "the layout");

  rcl_wait_set_t waits = rcl_get_zero_initialized_wait_set();
  must(rcl_wait_set_init(&waits, 2, 0, 0, 0, 0, 0, &context, allocator) == RCL_RET_OK, "rcl_wait_set_init");
  /* A signal is noticed after this time, too. */
  const int64_t period = (int64_t)fmin(NODE_PATIENCE_NS / 10, 1e8);
  while (!stopped) {
    must(rcl_wait_set_clear(&waits) == RCL_RET_OK &&
         rcl_wait_set_add_subscription(&waits, &active_contacts, NULL) == RCL_RET_OK &&
         rcl_wait_set_add_subscription(&waits, &joint_states, NULL) == RCL_RET_OK, "rcl_wait_set");
    const rcl_ret_t ret = rcl_wait(&waits, period);
    must(ret == RCL_RET_OK || ret == RCL_RET_TIMEOUT, "rcl_wait");
    if (waits.subscriptions[0]) take_contacts();
    if (waits.subscriptions[1]) take_joints();
    watch();
  }

  const bool done = rcl_wait_set_fini(&waits) == RCL_RET_OK && rcl_subscription_fini(&joint_states, &node) == RCL_RET_OK &&
                    rcl_subscription_fini(&active_contacts, &node) == RCL_RET_OK &&
                    rcl_publisher_fini(&layouts, &node) == RCL_RET_OK &&
                    rcl_publisher_fini(&matrices, &node) == RCL_RET_OK && rcl_node_fini(&node) == RCL_RET_OK &&
                    rcl_shutdown(&context) == RCL_RET_OK && rcl_context_fini(&context) == RCL_RET_OK &&
                    rcl_init_options_fini(&init) == RCL_RET_OK;
  must(done, "the end of the node");
  sensor_msgs__msg__JointState__destroy(joint_state);
  delassus_msgs__msg__ActiveContacts__destroy(contact_set);
  delassus_msgs__msg__DelassusMatrix__fini(&invalid);
  /* fini() takes the sizes for those of the reserved memory. */
  valid.contacts.size = valid.kinds.size = CONTACTS;
  delassus_msgs__msg__DelassusMatrix__fini(&valid);
  return 0;
}
