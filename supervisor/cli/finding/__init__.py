"""What `freshlane init` finds on this machine, and the lanes.yaml it makes of it."""
