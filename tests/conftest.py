"""Settings of every test: how many examples hypothesis tries, and stores that check themselves."""

import os

from hypothesis import settings

# Loaded machines make deadlines flaky, so none has one. `night` is for long runs by hand.
settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=300, deadline=None, print_blob=True)
settings.register_profile("night", max_examples=5_000, deadline=None, print_blob=True)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") == "true" else "dev")
)
# Each commit of a job db is checked against every invariant; `PYRESCHED_CHECK=` turns it off.
os.environ.setdefault("PYRESCHED_CHECK", "all")
