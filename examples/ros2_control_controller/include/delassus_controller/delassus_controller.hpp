// A chainable controller of ros2_control that reads joint positions and exports the Delassus matrix as state
// interfaces, which controllers of the same controller manager read in the same cycle.

#ifndef DELASSUS_CONTROLLER__DELASSUS_CONTROLLER_HPP_
#define DELASSUS_CONTROLLER__DELASSUS_CONTROLLER_HPP_

#include <array>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "delassus_controller/kernel.hpp"

namespace delassus_controller {

class DelassusController : public controller_interface::ChainableControllerInterface {
 public:
  controller_interface::CallbackReturn on_init() override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;
  controller_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State &previous) override;
  controller_interface::CallbackReturn on_deactivate(const rclcpp_lifecycle::State &previous) override;

 protected:
  std::vector<hardware_interface::StateInterface::SharedPtr> on_export_state_interfaces_list() override;
  controller_interface::return_type update_reference_from_subscribers(
      const rclcpp::Time &time, const rclcpp::Duration &period) override;
  controller_interface::return_type update_and_write_commands(
      const rclcpp::Time &time, const rclcpp::Duration &period) override;

 private:
  // Returns whether all entries were written; another thread may hold the lock of one.
  bool write(const std::array<double, Kernel::ENTRIES> &values);

  Kernel kernel_;
  std::array<double, Kernel::JOINTS> q_{};
};

}  // namespace delassus_controller

#endif  // DELASSUS_CONTROLLER__DELASSUS_CONTROLLER_HPP_
