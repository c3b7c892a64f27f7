"""Results of a solve as serialized messages."""
