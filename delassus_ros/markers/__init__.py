"""Pictures of a running node: markers for RViz, and the messages that pages show."""
