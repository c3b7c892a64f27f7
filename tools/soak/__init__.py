"""The soak run: the node under load for long, beside a node that only echoes, with a verdict."""
