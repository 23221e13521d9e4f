"""The five gates that a callback passes, in this order: identity, allowlist, rate, lifecycle, provenance.

Each takes plain data and says no by raising `Refusal`; none of them writes, but for rate's own count.
"""
