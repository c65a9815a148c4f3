"""Tests marked `docker` need a Docker daemon and the collector's image: CI must have them, others may do without."""

import functools
import os

import pytest

from evalagent.adapters import docker_daemon
from evalagent.adapters.collector import IMAGES
from evalagent.errors import EvalAgentError


@functools.cache
def lacking() -> str:
    """What is missing, and how to get it; empty where nothing is."""
    try:
        client = docker_daemon.connect(timeout_s=5)
    except EvalAgentError as error:
        return f"{error} (bash .ci/services)"
    try:
        if not any(docker_daemon.has_image(client, image) for image in IMAGES):
            return "the collector's image is missing: infra/collector/build.sh"
    finally:
        client.close()
    return ""


def require_docker() -> None:
    """Fails the test in CI and skips it elsewhere where Docker or the image is missing."""
    if missing := lacking():
        if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
            pytest.fail(f"Docker is needed in CI: {missing}", pytrace=False)
        pytest.skip(missing)
