"""Warm Python processes."""

from collections.abc import Mapping
from pathlib import Path

from evalagent.adapters.agents import Launch
from evalagent.suites import Agent


def warm(agent: Agent, suite_dir: Path, env: Mapping[str, str]) -> None:
    pass


def close() -> None:
    pass


def start(agent: Agent, ready: Launch, suite_dir: Path, work_dir: Path, environment: Mapping[str, str], fds: tuple[int, int, int]) -> None:
    return None
