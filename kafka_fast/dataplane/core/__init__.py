"""The transport: links, raw requests, heartbeats, and the turn that moves them. Private."""
