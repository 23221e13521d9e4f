"""The relay: webhooks in, dispatches out, callbacks in, dashboard. Wire-compatible with PyTorch's own."""
