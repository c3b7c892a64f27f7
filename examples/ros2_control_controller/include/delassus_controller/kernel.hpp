// The exported kernel as a class of plain C++: positions in, the Delassus matrix out. Nothing in this file knows
// ROS, so that it compiles and runs without ros2_control.

#ifndef DELASSUS_CONTROLLER__KERNEL_HPP_
#define DELASSUS_CONTROLLER__KERNEL_HPP_

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "robot.h"  // written by: delassus export ... --name robot

namespace delassus_controller {

// The matrix G = J M^-1 J^T of all contacts of the exported robot. Memory is reserved by the constructor;
// compute() allocates nothing, takes no lock and throws nothing.
class Kernel {
 public:
  static constexpr int JOINTS = ROBOT_IN_Q_SIZE;
  static constexpr int ROWS = ROBOT_ROWS;
  static constexpr int ENTRIES = ROWS * (ROWS + 1) / 2;  // G is symmetric: its upper triangle, row by row

  static_assert(ROBOT_IN_SIZE == ROBOT_IN_Q_SIZE,
                "the kernel has inputs besides joint positions: export G alone, with --axes contact or a fixed base");
  static_assert(ROBOT_OUT_SIZE == ROWS * ROWS, "the kernel has outputs besides G: export it without --outputs");

  // Name of the joint of position k; a joint of a loop counts, a mimic joint too.
  static const char *joint(int k) { return robot_joints[k]; }

  // Names of the entries, "G.LF.0.RF.2": row 0 of contact LF and row 2 of contact RF, in the order of values().
  static std::vector<std::string> names() {
    std::vector<std::string> rows, entries;
    for (int contact = 0; contact < ROBOT_CONTACTS; ++contact)
      for (auto row = robot_row_offsets[contact]; row < robot_row_offsets[contact + 1]; ++row)
        rows.push_back(std::string(robot_contacts[contact]) + "." + std::to_string(row - robot_row_offsets[contact]));
    for (int i = 0; i < ROWS; ++i)
      for (int j = i; j < ROWS; ++j) entries.push_back("G." + rows[i] + "." + rows[j]);
    return entries;
  }

  // Compute G at these positions [rad, m]. Returns ROBOT_OK, or the status of robot.h that says why there is no G;
  // all values are then NaN.
  std::int32_t compute(const double *q) noexcept {
    const std::int32_t status = robot_kernel(q, G_.data(), work_.data());
    auto value = values_.begin();
    for (int i = 0; i < ROWS; ++i)
      for (int j = i; j < ROWS; ++j)
        *value++ = status == ROBOT_OK ? G_[i * ROWS + j] : std::numeric_limits<double>::quiet_NaN();
    return status;
  }

  // Upper triangle of the latest G, row by row; units 1/kg, 1/(kg m) and 1/(kg m^2).
  const std::array<double, ENTRIES> &values() const { return values_; }

 private:
  std::array<double, ROBOT_OUT_SIZE> G_{};
  std::array<double, ROBOT_WORK_SIZE + 1> work_{};  // the kernel may need no scratch
  std::array<double, ENTRIES> values_{};
};

}  // namespace delassus_controller

#endif  // DELASSUS_CONTROLLER__KERNEL_HPP_
