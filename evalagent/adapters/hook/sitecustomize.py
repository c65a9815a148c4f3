"""Loaded by Python itself at start, because EvalAgent put this folder on PYTHONPATH; the agent is not edited.

Runs the sitecustomize that it hides, if there is one, then the hook. Neither may stop the agent from starting.
"""

import sys


def _hidden() -> None:
    """Run the sitecustomize that would have been loaded without this folder."""
    import importlib.machinery
    import importlib.util
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        ours = sys.modules.get("sitecustomize")
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            if ours is not None:
                sys.modules["sitecustomize"] = ours
            raise


try:
    _hidden()
except Exception as error:  # as `site` itself does for a broken one
    sys.stderr.write(f"evalagent hook: the sitecustomize behind this one failed: {error!r}\n")

try:
    import evalagent_hook  # type: ignore[import-not-found]

    evalagent_hook.install()
except Exception as error:
    sys.stderr.write(f"evalagent hook: not installed, the agent runs unobserved: {error!r}\n")
