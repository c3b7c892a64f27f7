"""The node while it is active: from the subscriptions to the published matrices."""
