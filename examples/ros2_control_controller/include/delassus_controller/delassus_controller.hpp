// A chainable controller of ros2_control that reads the state of a robot and exports Delassus matrix, free
// accelerations and contact forces as state interfaces, which controllers of the same controller manager read in the
// same cycle.

#ifndef DELASSUS_CONTROLLER__DELASSUS_CONTROLLER_HPP_
#define DELASSUS_CONTROLLER__DELASSUS_CONTROLLER_HPP_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "delassus_controller/delassus_controller_parameters.hpp"  // of src/delassus_controller_parameters.yaml
#include "delassus_controller/kernel.hpp"

namespace delassus_controller {

class DelassusController : public controller_interface::ChainableControllerInterface {
 public:
  controller_interface::CallbackReturn on_init() override;
  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State &previous) override;
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
  // A number of the kernel and the state interface that it is read from.
  struct Input {
    std::string interface;
    double *number;
  };

  // Writes all values. If another thread has the lock of one, this value stays, and all remaining ones are NaN: no
  // reader takes values of two cycles for those of one.
  void write(const std::array<double, Kernel::VALUES> &values);

  std::shared_ptr<ParamListener> param_listener_;
  Kernel kernel_;
  std::vector<Input> inputs_;
};

}  // namespace delassus_controller

#endif  // DELASSUS_CONTROLLER__DELASSUS_CONTROLLER_HPP_
