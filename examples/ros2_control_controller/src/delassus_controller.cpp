#include "delassus_controller/delassus_controller.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <memory>
#include <set>
#include <string>

#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace delassus_controller {

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;

CallbackReturn DelassusController::on_init() {
  try {
    param_listener_ = std::make_shared<ParamListener>(get_node());
  } catch (const std::exception &error) {
    RCLCPP_ERROR(get_node()->get_logger(), "parameters: %s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn DelassusController::on_configure(const rclcpp_lifecycle::State &) {
  const Params params = param_listener_->get_params();
  if (params.friction.size() != 1 && params.friction.size() != Kernel::CONTACTS) {
    RCLCPP_ERROR(get_node()->get_logger(), "friction has %zu coefficients, but the kernel has %d contacts",
                 params.friction.size(), Kernel::CONTACTS);
    return CallbackReturn::ERROR;
  }
  if (!params.touching.empty() && params.touching.size() != Kernel::CONTACTS) {
    RCLCPP_ERROR(get_node()->get_logger(), "touching has %zu interfaces, but the kernel has %d contacts",
                 params.touching.size(), Kernel::CONTACTS);
    return CallbackReturn::ERROR;
  }
  std::copy(params.gravity.begin(), params.gravity.end(), kernel_.gravity());
  for (int k = 0; k < Kernel::CONTACTS; ++k) {
    kernel_.friction()[k] = params.friction[params.friction.size() == 1 ? 0 : k];
    kernel_.touching()[k] = 1.0;
  }

  inputs_.clear();
  const auto joint = [](const char *name, const char *interface) { return std::string(name) + "/" + interface; };
  for (int k = 0; k < Kernel::JOINTS; ++k)
    inputs_.push_back({joint(Kernel::joint(k), hardware_interface::HW_IF_POSITION), kernel_.q() + k});
  for (int n = Kernel::BASE; n < Kernel::VELOCITIES; ++n) {
    inputs_.push_back({joint(Kernel::velocity(n), hardware_interface::HW_IF_VELOCITY), kernel_.rates() + n});
    inputs_.push_back({joint(Kernel::velocity(n), hardware_interface::HW_IF_EFFORT), kernel_.torques() + n});
  }
  for (int k = 0; k < Kernel::ORIENTATION; ++k)
    inputs_.push_back({params.base.orientation[k], kernel_.base_orientation() + k});
  for (int n = 0; n < Kernel::BASE; ++n) inputs_.push_back({params.base.twist[n], kernel_.rates() + n});
  for (std::size_t k = 0; k < params.touching.size(); ++k)
    inputs_.push_back({params.touching[k], kernel_.touching() + k});

  std::set<std::string> names;
  for (const Input &input : inputs_) {
    // The controller manager stops the process at such a name.
    if (input.interface.find('/') == std::string::npos) {
      RCLCPP_ERROR(get_node()->get_logger(), "'%s' is no state interface: expected COMPONENT/INTERFACE",
                   input.interface.c_str());
      return CallbackReturn::ERROR;
    }
    // So it is with joints of several positions as well, which ros2_control does not have.
    if (!names.insert(input.interface).second) {
      RCLCPP_ERROR(get_node()->get_logger(), "two inputs have the state interface %s", input.interface.c_str());
      return CallbackReturn::ERROR;
    }
  }
  return CallbackReturn::SUCCESS;
}

InterfaceConfiguration DelassusController::command_interface_configuration() const {
  return {interface_configuration_type::NONE, {}};
}

InterfaceConfiguration DelassusController::state_interface_configuration() const {
  InterfaceConfiguration wanted{interface_configuration_type::INDIVIDUAL, {}};
  for (const Input &input : inputs_) wanted.names.push_back(input.interface);
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
  // update_and_write_commands() reads interfaces by their order, so the order is checked once, here.
  if (state_interfaces_.size() != inputs_.size()) {
    RCLCPP_ERROR(get_node()->get_logger(), "%zu state interfaces were assigned, but the kernel has %zu inputs",
                 state_interfaces_.size(), inputs_.size());
    return CallbackReturn::ERROR;
  }
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    if (state_interfaces_[k].get_name() != inputs_[k].interface) {
      RCLCPP_ERROR(get_node()->get_logger(), "state interface %zu is %s, but %s is wanted", k,
                   state_interfaces_[k].get_name().c_str(), inputs_[k].interface.c_str());
      return CallbackReturn::ERROR;
    }
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn DelassusController::on_deactivate(const rclcpp_lifecycle::State &) {
  // A reader must not take the last values for present ones.
  std::array<double, Kernel::VALUES> unknown;
  unknown.fill(std::numeric_limits<double>::quiet_NaN());
  write(unknown);
  return CallbackReturn::SUCCESS;
}

return_type DelassusController::update_reference_from_subscribers(const rclcpp::Time &, const rclcpp::Duration &) {
  return return_type::OK;  // The controller has no references.
}

return_type DelassusController::update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration &) {
  // An interface that another thread locks has no value in this cycle; the kernel then answers NOT_FINITE.
  for (std::size_t k = 0; k < inputs_.size(); ++k)
    *inputs_[k].number = state_interfaces_[k].get_optional().value_or(std::numeric_limits<double>::quiet_NaN());
  // Values that cannot be computed are NaN, and the controller stays active: the next cycle may have them. ERROR would
  // make the controller manager deactivate the controller and all its readers.
  kernel_.compute();
  write(kernel_.values());
  return return_type::OK;
}

void DelassusController::write(const std::array<double, Kernel::VALUES> &values) {
  bool is_written = true;
  for (int k = 0; k < Kernel::VALUES; ++k)
    is_written &= ordered_exported_state_interfaces_[k]->set_value(values[k]);
  if (is_written) return;
  for (auto &interface : ordered_exported_state_interfaces_)
    (void)interface->set_value(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace delassus_controller

PLUGINLIB_EXPORT_CLASS(
    delassus_controller::DelassusController, controller_interface::ChainableControllerInterface)
