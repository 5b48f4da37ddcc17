"""What the kernel takes away from a process before untrusted code runs in it: files, calls, resources.

Landlock for files and TCP, a seccomp allow-list for system calls, rlimits for the rest. Standard
library only: the worker scripts load this file by its path into an interpreter that has nothing else.
Irreversible for the calling process; what is missing raises and is never done without.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Iterable

__all__ = [
    "ConfinementImpossible",
    "confine_files",
    "confine_resources",
    "confine_system_calls",
    "missing_features",
]

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_ALL_FILE_RIGHTS = (1 << 16) - 1
_TCP_SINCE, _SCOPES_SINCE = 4, 6
_BOTH = 3
"""Bind and connect of TCP; abstract sockets and signals of scopes."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38

_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_ALLOWED = {
    "read": 0,
    "write": 1,
    "open": 2,
    "close": 3,
    "stat": 4,
    "fstat": 5,
    "lstat": 6,
    "poll": 7,
    "lseek": 8,
    "mmap": 9,
    "mprotect": 10,
    "munmap": 11,
    "brk": 12,
    "rt_sigaction": 13,
    "rt_sigprocmask": 14,
    "rt_sigreturn": 15,
    "pread64": 17,
    "readv": 19,
    "writev": 20,
    "access": 21,
    "sched_yield": 24,
    "mremap": 25,
    "madvise": 28,
    "nanosleep": 35,
    "getpid": 39,
    "exit": 60,
    "uname": 63,
    "getcwd": 79,
    "readlink": 89,
    "gettimeofday": 96,
    "times": 100,
    "getuid": 102,
    "getgid": 104,
    "geteuid": 107,
    "getegid": 108,
    "sigaltstack": 131,
    "gettid": 186,
    "futex": 202,
    "getdents64": 217,
    "clock_gettime": 228,
    "clock_getres": 229,
    "clock_nanosleep": 230,
    "exit_group": 231,
    "openat": 257,
    "newfstatat": 262,
    "readlinkat": 267,
    "faccessat": 269,
    "getrandom": 318,
    "statx": 332,
}
"""Of x86_64. None of them reaches another process, starts one, or opens a socket."""

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM


class ConfinementImpossible(RuntimeError):  # noqa: N818
    """The kernel lacks what confinement needs, or refused it."""


def missing_features(*, system_calls: bool) -> list[str]:
    """Return what this machine lacks for confinement, readable; empty where nothing is missing.

    Args:
        system_calls: whether the seccomp filter is needed too.
    """
    if not sys.platform.startswith("linux"):
        return [f"Linux with Landlock (this is {sys.platform})"]
    missing: list[str] = []
    if _landlock_version() < 1:
        missing.append("Landlock (Linux 5.13 or later, with `landlock` among the active security modules)")
    if system_calls and platform.machine() != "x86_64":
        missing.append(f"a system call filter for {platform.machine()} (there is one for x86_64)")
    if system_calls and not os.path.exists("/proc/sys/kernel/seccomp/actions_avail"):
        missing.append("seccomp (a kernel with CONFIG_SECCOMP_FILTER)")
    return missing


def confine_files(readable: Iterable[str] = (), executable: Iterable[str] = ()) -> None:
    """Refuse every file but these, and TCP where the kernel can.

    Raises:
        ConfinementImpossible: the kernel did not do it.
    """
    libc, version = _libc(), _landlock_version()
    if version < 1:
        raise ConfinementImpossible("the kernel has no Landlock")
    rights = _FILE_RIGHTS.get(version, _ALL_FILE_RIGHTS)
    network = _BOTH if version >= _TCP_SINCE else 0
    scopes = _BOTH if version >= _SCOPES_SINCE else 0
    attributes = struct.pack("<QQQ", rights, network, scopes)
    size = 24 if version >= _SCOPES_SINCE else 16 if version >= _TCP_SINCE else 8
    ruleset = libc.syscall(_LANDLOCK_CREATE, ctypes.c_char_p(attributes), size, 0)
    _check(ruleset, "landlock_create_ruleset")
    for paths, granted in ((readable, _READ_FILE), (executable, _READ_FILE | _EXECUTE)):
        for path in paths:
            _allow_path(libc, ruleset, path, granted)
    _forbid_new_privileges(libc)
    _check(libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def _allow_path(libc: ctypes.CDLL, ruleset: int, path: str, granted: int) -> None:
    if not os.path.exists(path):
        return
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rights = granted | _READ_DIR if os.path.isdir(path) else granted
    rule = struct.pack("<Qi", rights, descriptor)
    done = libc.syscall(_LANDLOCK_ADD, ruleset, 1, ctypes.c_char_p(rule), 0)
    _check(done, f"landlock_add_rule for {path}")
    os.close(descriptor)


def confine_system_calls() -> None:
    """Refuse every system call that is not on the list; of another architecture, end the process.

    Raises:
        ConfinementImpossible: there is no list for this machine, or the kernel did not do it.
    """
    if platform.machine() != "x86_64":
        raise ConfinementImpossible(f"no system call filter for {platform.machine()}")
    libc = _libc()
    program = [_step(_LOAD, 4), _step(_JUMP_EQUAL, _X86_64, 1, 0), _step(_RETURN, _KILL)]
    program += [_step(_LOAD, 0), _step(_JUMP_AT_LEAST, _X32_BIT, 0, 1), _step(_RETURN, _KILL)]
    for number in sorted(_ALLOWED.values()):
        program += [_step(_JUMP_EQUAL, number, 0, 1), _step(_RETURN, _ALLOW)]
    program.append(_step(_RETURN, _REFUSE))
    code = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(code))
    _forbid_new_privileges(libc)
    _check(libc.prctl(_PR_SET_SECCOMP, 2, ctypes.c_char_p(header), 0, 0), "seccomp")


def confine_resources(memory_bytes: int, cpu_seconds: int | None = None) -> None:
    """Bound memory and processor time; no file grows and no core is written.

    With a bound on processor time the process also ends with the thread that started it.
    """
    libc = _libc()
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    if cpu_seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _step(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, operand)


def _forbid_new_privileges(libc: ctypes.CDLL) -> None:
    _check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def _landlock_version() -> int:
    return _libc().syscall(_LANDLOCK_CREATE, None, 0, 1)


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _check(result: int, what: str) -> None:
    if result < 0:
        raise ConfinementImpossible(f"{what}: {os.strerror(ctypes.get_errno())}")
