"""EvalAgent: whether an LLM agent works, which step broke it, and what could not be judged."""

__version__ = "0.1.0"
