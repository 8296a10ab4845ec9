"""A real process that speaks a model server's wire, with a dial for everything that goes wrong with one.

Started through tests.fakes.fake_command; needs only the standard library, so that it starts in a tenth of a second.
"""
