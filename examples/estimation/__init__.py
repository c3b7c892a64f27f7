"""Contact forces of a walking quadruped, estimated by delassus_estimator beside the truth."""
