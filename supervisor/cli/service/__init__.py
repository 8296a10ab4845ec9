"""Installing freshlane as a service: what to tell which manager, and how."""
