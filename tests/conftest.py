"""One Hypothesis profile for everybody: derandomised, so that a run can be repeated bit for bit."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "derandomised",
    derandomize=True,
    deadline=None,
    print_blob=True,
    # Exact enumeration is slow by nature; a slow draw is no defect here.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("derandomised")
