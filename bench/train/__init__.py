"""Train DFlash-mini, the small draft network for the built-in model. See README.md beside this file."""
