"""What nodes need of rclpy and the operating system: threads, queues, timers, QoS, logs."""
