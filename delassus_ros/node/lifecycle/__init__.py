"""The node from configure to cleanup: computation, its changes, services, diagnostics."""
