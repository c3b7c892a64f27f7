"""Facts of a robot that its description does not state: base, limbs, contacts, a posture."""
