"""Runs workflows: data flow, effect policy at every call, memory and ledger, and the trace."""
