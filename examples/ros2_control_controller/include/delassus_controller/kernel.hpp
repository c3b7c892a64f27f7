// The exported kernels as a class of plain C++: state of the robot in, Delassus matrix, free accelerations and contact
// forces out. Nothing in this file knows ROS, so that it compiles and runs without ros2_control.

#ifndef DELASSUS_CONTROLLER__KERNEL_HPP_
#define DELASSUS_CONTROLLER__KERNEL_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "robot.h"  // written by: delassus export ... --axes world --outputs a0 --friction, with the name robot
#include "robot_forces.h"

namespace delassus_controller {

// G = J M^-1 J^T and a0 of all contacts of a robot, and the forces f of the contacts that touch, in the axes of the
// world. Memory is reserved by the constructor; compute() allocates nothing, takes no lock and throws nothing.
class Kernel {
 public:
  static constexpr int JOINTS = ROBOT_IN_Q_SIZE;
  static constexpr int VELOCITIES = ROBOT_VELOCITIES;  // those of the base come first
  static constexpr int ORIENTATION = ROBOT_IN_RATES - JOINTS;  // numbers of a quaternion; none of a fixed base
  static constexpr int BASE = ORIENTATION == 0 ? 0 : 6;        // velocities of the base
  static constexpr int CONTACTS = ROBOT_CONTACTS;
  static constexpr int ROWS = ROBOT_ROWS;
  static constexpr int ENTRIES = ROWS * (ROWS + 1) / 2;  // G is symmetric: its upper triangle, row by row
  static constexpr int VALUES = ENTRIES + 2 * ROWS;      // the entries of G, then a0, then f

  static_assert(ROBOT_IN_SIZE == JOINTS + ORIENTATION + 2 * VELOCITIES + ROBOT_IN_GRAVITY_SIZE,
                "the kernel has inputs besides q, base_orientation, rates, torques and gravity");
  static_assert(ROBOT_OUT_SIZE == ROWS * ROWS + 2 * ROWS,
                "the kernel has other outputs than G, a0 and v: export it with --axes world --outputs a0 --friction");
  static_assert(ROBOT_FORCES_ROWS == ROWS, "robot.h and robot_forces.h are of different exports");

  // Name of the joint of position k; a joint of a loop counts, a mimic joint too.
  static const char *joint(int k) { return robot_joints[k]; }
  // Name of the joint of velocity n, which is also that of force or torque n; those of the base have no joint.
  static const char *velocity(int n) { return robot_velocities[n]; }
  static const char *contact(int k) { return robot_contacts[k]; }

  // Names of values(): "G.LF.0.RF.2" is row 0 of contact LF and row 2 of contact RF, "a0.LF.0" and "f.LF.0" are row 0
  // of contact LF.
  static std::vector<std::string> names() {
    std::vector<std::string> rows, names;
    for (int k = 0; k < CONTACTS; ++k)
      for (auto row = robot_row_offsets[k]; row < robot_row_offsets[k + 1]; ++row)
        rows.push_back(std::string(contact(k)) + "." + std::to_string(row - robot_row_offsets[k]));
    for (int i = 0; i < ROWS; ++i)
      for (int j = i; j < ROWS; ++j) names.push_back("G." + rows[i] + "." + rows[j]);
    for (const std::string vector : {"a0.", "f."})
      for (const auto &row : rows) names.push_back(vector + row);
    return names;
  }

  // Inputs, which compute() leaves as they are.
  double *q() { return in_.data(); }                                // JOINTS [rad, m]
  double *base_orientation() { return in_.data() + JOINTS; }        // ORIENTATION: unit quaternion x, y, z, w
  double *rates() { return in_.data() + ROBOT_IN_RATES; }           // VELOCITIES; that of the base is in its own axes
  double *torques() { return in_.data() + ROBOT_IN_TORQUES; }       // VELOCITIES [N m, N]; at first zeros
  double *gravity() { return in_.data() + ROBOT_IN_GRAVITY; }       // x, y, z in the axes of the world [m/s^2]
  double *friction() { return friction_.data(); }                   // CONTACTS
  double *touching() { return touching_.data(); }                   // CONTACTS; 0 for a contact that does not touch

  // Compute all values. Returns ROBOT_OK, or the status of robot.h that says why there is no G; all values are then
  // NaN. If the contacts have no forces, f alone is NaN; the force of a contact that does not touch is 0.
  std::int32_t compute() noexcept {
    values_.fill(std::numeric_limits<double>::quiet_NaN());
    forces_status_ = ROBOT_FORCES_NOT_FINITE;
    const std::int32_t status = robot_kernel(in_.data(), out_.data(), work_.data());
    if (status != ROBOT_OK) return status;
    const double *G = out_.data() + ROBOT_OUT_G, *a0 = out_.data() + ROBOT_OUT_A0;
    double *value = values_.data();
    for (int i = 0; i < ROWS; ++i) value = std::copy(G + i * ROWS + i, G + (i + 1) * ROWS, value);
    value = std::copy(a0, a0 + ROWS, value);
    compute_forces(value);
    return status;
  }

  // The entries of the latest G [1/kg, 1/(kg m), 1/(kg m^2)], a0 [m/s^2, rad/s^2] and f [N, N m].
  const std::array<double, VALUES> &values() const { return values_; }

  // Status of the latest forces, as in robot_forces.h.
  std::int64_t forces_status() const { return forces_status_; }

 private:
  // Each call begins with forces of zero, so that f depends on the inputs of this cycle alone.
  void compute_forces(double *f) noexcept {
    std::int64_t count = 0, n = 0;
    for (int k = 0; k < CONTACTS; ++k) {
      if (std::isnan(touching_[k])) return;
      if (touching_[k] == 0.0) continue;
      active_[count] = k;
      active_friction_[count++] = friction_[k];
      for (auto row = robot_row_offsets[k]; row < robot_row_offsets[k + 1]; ++row, ++n) {
        rows_[n] = row;
        a0_[n] = out_[ROBOT_OUT_A0 + row];
        v_[n] = out_[ROBOT_OUT_V + row];
      }
    }
    robot_slice(out_.data() + ROBOT_OUT_G, ROWS, rows_.data(), n, G_.data());
    cone_forces_.fill(0.0);
    forces_status_ = robot_contact_forces(
        active_.data(), count, ROBOT_FORCES_COULOMB, ROBOT_FORCES_BUDGET, ROBOT_FORCES_TOLERANCE,
        active_friction_.data(), nullptr, nullptr, nullptr, G_.data(), a0_.data(), v_.data(), cone_forces_.data(),
        forces_.data(), accelerations_.data(), info_.data(), nullptr, forces_work_.data(), indices_.data());
    if (forces_status_ != ROBOT_FORCES_SOLVED) return;
    std::fill(f, f + ROWS, 0.0);
    for (int i = 0; i < n; ++i) f[rows_[i]] = forces_[i];
  }

  std::array<double, ROBOT_IN_SIZE> in_{};
  std::array<double, ROBOT_OUT_SIZE> out_{};
  std::array<double, ROBOT_WORK_SIZE + 1> work_{};  // the kernel may need no scratch
  std::array<double, CONTACTS> friction_{}, touching_{};
  std::array<double, VALUES> values_{};

  // Of the contacts that touch.
  std::array<std::int64_t, CONTACTS> active_{};
  std::array<std::int64_t, ROWS> rows_{};
  std::array<double, CONTACTS> active_friction_{};
  std::array<double, ROWS * ROWS> G_{};
  std::array<double, ROWS> a0_{}, v_{}, forces_{}, accelerations_{};
  std::array<double, ROBOT_FORCES_CONE_ROWS> cone_forces_{};
  std::array<double, ROBOT_FORCES_INFO_SIZE> info_{};
  std::array<double, ROBOT_FORCES_WORK_SIZE> forces_work_{};
  std::array<std::int64_t, ROBOT_FORCES_INDEX_SIZE> indices_{};
  std::int64_t forces_status_ = ROBOT_FORCES_NOT_FINITE;
};

}  // namespace delassus_controller

#endif  // DELASSUS_CONTROLLER__KERNEL_HPP_
