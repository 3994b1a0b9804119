"""Keyed delivery: the checks that all Python clients share."""

from keyed_checks import *  # noqa: F403
