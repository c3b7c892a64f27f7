"""Conversion of robot makers' messages to the messages that the nodes subscribe to."""
