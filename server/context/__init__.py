"""What a model that works step by step is shown: one log of events, rendered by a policy.

Paper: AgentEvolver (context manager: live context timeline, timeline snapshot recorder; facts §4.5).
Differs: the log is never edited; a template is a pure function of it, so that any call can be shown again.
"""
