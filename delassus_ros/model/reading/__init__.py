"""From text to a robot: URDF and URDF+ in XML, side files in YAML, read without trust."""
