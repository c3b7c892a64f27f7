"""Services of rclpy and the operating system for nodes: threads, queues, timers, QoS, logs."""
