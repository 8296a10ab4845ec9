"""What a lane does about each event, one module a source: a person, the worker, workers beside it, the gate, a
canary, time.
"""
