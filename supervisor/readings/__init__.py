"""What known servers say of themselves, by log line or endpoint, made into numbers. Pure: no I/O, no clock.

One file a server; none raises, whatever a line or a body says. What is not told stays None.
"""
