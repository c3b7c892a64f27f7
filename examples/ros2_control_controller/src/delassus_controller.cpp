#include "delassus_controller/delassus_controller.hpp"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "pluginlib/class_list_macros.hpp"

namespace delassus_controller {

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;

namespace {

std::string position_of(int joint) { return std::string(Kernel::joint(joint)) + "/position"; }

}  // namespace

CallbackReturn DelassusController::on_init() { return CallbackReturn::SUCCESS; }

InterfaceConfiguration DelassusController::command_interface_configuration() const {
  return {interface_configuration_type::NONE, {}};
}

InterfaceConfiguration DelassusController::state_interface_configuration() const {
  InterfaceConfiguration wanted{interface_configuration_type::INDIVIDUAL, {}};
  for (int k = 0; k < Kernel::JOINTS; ++k) wanted.names.push_back(position_of(k));
  return wanted;
}

std::vector<hardware_interface::StateInterface::SharedPtr> DelassusController::on_export_state_interfaces_list() {
  std::vector<hardware_interface::StateInterface::SharedPtr> exported;
  for (const auto &name : Kernel::names()) {
    hardware_interface::InterfaceInfo info;
    info.name = name;
    info.data_type = "double";
    const hardware_interface::InterfaceDescription description(get_node()->get_name(), info);
    exported.push_back(std::make_shared<hardware_interface::StateInterface>(description));
  }
  return exported;
}

CallbackReturn DelassusController::on_activate(const rclcpp_lifecycle::State &) {
  // The kernel takes positions by their order, so the order is checked once, here.
  if (state_interfaces_.size() != static_cast<std::size_t>(Kernel::JOINTS)) {
    RCLCPP_ERROR(get_node()->get_logger(), "%zu state interfaces were assigned, but the kernel has %d joints",
                 state_interfaces_.size(), Kernel::JOINTS);
    return CallbackReturn::ERROR;
  }
  for (int k = 0; k < Kernel::JOINTS; ++k) {
    if (state_interfaces_[k].get_name() != position_of(k)) {
      RCLCPP_ERROR(get_node()->get_logger(), "state interface %d is %s, but the kernel was exported for %s", k,
                   state_interfaces_[k].get_name().c_str(), position_of(k).c_str());
      return CallbackReturn::ERROR;
    }
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn DelassusController::on_deactivate(const rclcpp_lifecycle::State &) {
  // A reader must not take the last matrix for a present one.
  std::array<double, Kernel::ENTRIES> unknown;
  unknown.fill(std::numeric_limits<double>::quiet_NaN());
  // An entry that a reader locks just now is free soon after.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    if (write(unknown)) return CallbackReturn::SUCCESS;
    std::this_thread::yield();
  }
  RCLCPP_ERROR(get_node()->get_logger(), "an entry of the matrix stays locked, and may keep its last value");
  return CallbackReturn::ERROR;
}

return_type DelassusController::update_reference_from_subscribers(const rclcpp::Time &, const rclcpp::Duration &) {
  return return_type::OK;  // The controller has no references.
}

return_type DelassusController::update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration &) {
  for (int k = 0; k < Kernel::JOINTS; ++k) {
    // An interface that another thread locks has no value in this cycle; the kernel then answers NOT_FINITE.
    q_[k] = state_interfaces_[k].get_optional().value_or(std::numeric_limits<double>::quiet_NaN());
  }
  // A matrix that cannot be computed is NaN, and the controller stays active: the next cycle may have one.
  kernel_.compute(q_.data());
  // An entry that is locked keeps the value of an earlier cycle: ERROR tells the controller manager so.
  return write(kernel_.values()) ? return_type::OK : return_type::ERROR;
}

bool DelassusController::write(const std::array<double, Kernel::ENTRIES> &values) {
  bool is_written = true;
  for (int k = 0; k < Kernel::ENTRIES; ++k)
    is_written &= ordered_exported_state_interfaces_[k]->set_value(values[k]);
  return is_written;
}

}  // namespace delassus_controller

PLUGINLIB_EXPORT_CLASS(
    delassus_controller::DelassusController, controller_interface::ChainableControllerInterface)
