"""The soak run: a long run of delassus_node under load, compared with an echo node."""
