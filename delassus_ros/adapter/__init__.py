"""Messages of robots' makers, converted into those that the nodes subscribe to."""
