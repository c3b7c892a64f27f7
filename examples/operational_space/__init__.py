"""An arm wipes a surface with constant force by the operational-space formulation."""
