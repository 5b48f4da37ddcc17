"""Benchmarks: what the bank reaches on real tool servers, measured by one command."""

from __future__ import annotations

from server.bench.errors import BenchError, DemoServersMissing, TasksRejected
from server.bench.registry import BENCHMARKS
from server.bench.run import run_bench

__all__ = ["BENCHMARKS", "BenchError", "DemoServersMissing", "TasksRejected", "run_bench"]
