"""The degraded driver: stdout and stderr of the child in one pipe, stdin from another. Runs in hosts."""

import os

from coordinate_agents.sessions.drivers.base import Child, Start, prepare, stdin_pipe


def spawn(start: Start) -> Child:
    """Fork and execute. Blocks until exec succeeded or failed. Raises: OSError from chdir or exec."""
    return spawn_on_pipes(start)


def spawn_on_pipes(start: Start, *, with_errors: bool = False) -> Child:
    """As `spawn`; `with_errors`: stderr has a pipe of its own, `Child.errors`."""
    host = os.getpid()
    child_in, host_in = stdin_pipe()
    host_out, child_out = os.pipe()
    host_err, child_err = os.pipe() if with_errors else (-1, child_out)
    failure_in, failure_out = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(start, host, (child_in, child_out, child_err, failure_out))
    for descriptor in {child_in, child_out, child_err, failure_out}:
        os.close(descriptor)
    failure = os.read(failure_in, 64)
    os.close(failure_in)
    if failure:
        os.waitpid(pid, 0)
        for descriptor in (host_in, host_out, *((host_err,) if with_errors else ())):
            os.close(descriptor)
        number, _, step = failure.decode("ascii").partition(" ")
        raise OSError(int(number), os.strerror(int(number)), start.cwd if step == "chdir" else start.executable)
    os.set_blocking(host_out, False)
    if with_errors:
        os.set_blocking(host_err, False)
    keeps_input = start.stdin is None and start.is_input_open
    if start.stdin is None and not keeps_input:
        os.close(host_in)
        host_in = -1
    child = Child(pid, host_out, host_in)
    child.is_input_open = keeps_input
    child.errors = host_err
    return child


def _become(start: Start, host: int, descriptors: tuple[int, int, int, int]) -> None:
    """Child side; never returns. A failure goes to the host as "errno step" through the last descriptor."""
    child_in, child_out, child_err, failure_out = descriptors
    step = "prepare"
    try:
        os.setsid()
        prepare(start, host)
        os.dup2(child_in, 0)
        os.dup2(child_out, 1)
        os.dup2(child_err, 2)
        step = "chdir"
        os.chdir(start.cwd)
        step = "exec"
        os.execve(start.executable, start.argv, start.env)
    except OSError as error:
        os.write(failure_out, f"{error.errno or 5} {step}".encode("ascii"))
    except BaseException:
        os.write(failure_out, b"22 exec")
    finally:
        os._exit(127)
