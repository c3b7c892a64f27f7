// The controller manager finds the plug-in, and loads a controller of it with its parameters.

#include <gmock/gmock.h>

#include <memory>

#include "controller_manager/controller_manager.hpp"
#include "rclcpp/executors/single_threaded_executor.hpp"
#include "rclcpp/utilities.hpp"
#include "ros2_control_test_assets/descriptions.hpp"

TEST(TestLoadDelassusController, load_controller) {
  controller_manager::ControllerManager manager(
      std::make_shared<rclcpp::executors::SingleThreadedExecutor>(), ros2_control_test_assets::minimal_robot_urdf, true,
      "test_controller_manager");
  manager.set_parameter({"delassus.params_file", CONTROLLERS_YAML});
  manager.set_parameter({"delassus.type", "delassus_controller/DelassusController"});
  ASSERT_NE(manager.load_controller("delassus"), nullptr);
}

int main(int argc, char **argv) {
  ::testing::InitGoogleMock(&argc, argv);
  rclcpp::init(argc, argv);
  const int result = RUN_ALL_TESTS();
  rclcpp::shutdown();
  return result;
}
