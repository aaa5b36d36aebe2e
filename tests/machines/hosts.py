"""Two hosts on one machine: network namespaces with a switch between them, and a launcher of MPI on the first host.

A script calls enter_namespaces() first. It then runs in its own namespaces (network, processes, mounts, shared memory),
so that everything that it creates or starts ends with the script. The script's network is the switch. Each host has a
host name, an address, one core, a folder for temporary files and its own copy of the data."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

SKIPPED = 77  # the exit code of a test that cannot run here

_NAMESPACES = ["--net", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
_ENTERED = "DTRAIN_HOSTS_ENTERED"

# A script that runs a command on one of the hosts. `enter NUMBER COMMAND...` runs the command on the host with this
# number, with one core. `enter all COMMAND...` runs it on host 1 with all cores.
_ENTER = """\
#!/bin/sh
case $1 in
  1) node=1 cores={first} ;;
  2) node=2 cores={last} ;;
  *) node=1 cores={all} ;;
esac
shift
export TMPDIR={folder}/tmp$node
exec nsenter --net=/run/netns/node$node unshare --uts --mount sh -c '
hostname node'$node' && mount --bind {folder}/samples'$node' {folder}/shared/samples && exec "$@"' sh taskset -c $cores "$@"
"""
# A program that the launchers call instead of ssh: `agent OPTIONS HOST COMMAND...`.
_AGENT = """\
#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1; shift
exec {folder}/enter ${{host##*.}} sh -c "$*"
"""

# Open MPI refuses to run as root unless these variables are set. The last variable is for UCX, which MPICH uses:
# otherwise, UCX would notice that the hosts share memory.
_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "UCX_TLS": "tcp,self", "OMP_NUM_THREADS": "1"}
_LAUNCHERS = ("OMPI_", "PMI", "PRTE_", "SLURM_", "MPI_LOCAL", "HYDI_")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def enter_namespaces():
    """Restarts the script in its own namespaces. If this is not possible on this machine, exits the script as
    skipped."""
    if os.environ.get(_ENTERED):
        return
    for program in ("ip", "tc", "nsenter", "taskset"):
        if not shutil.which(program):
            skip(f"there is no {program} (Debian's iproute2 and util-linux)")
    unshare = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), *_NAMESPACES]
    attempt = subprocess.run([*unshare, "sh", "-c", "mount -t tmpfs none /run && ip link add switch type bridge && "
                              "tc qdisc add dev switch root tbf rate 1mbit burst 10kb latency 1s"], capture_output=True, text=True)
    if attempt.returncode:
        skip(f"no right to make network namespaces here: {attempt.stderr.strip()}")
    os.environ[_ENTERED] = "1"
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


def environment():
    own = {key: value for key, value in os.environ.items() if not key.startswith(_LAUNCHERS)}
    return {**own, **_ENVIRONMENT}


def launchers():
    """Returns the names of the MPIs whose launcher is installed."""
    return [name for name, path in (("openmpi", "mpirun.openmpi"), ("mpich", "mpiexec.mpich")) if shutil.which(path)]


class Hosts:
    """Two hosts that are connected by a network. Both hosts have the working directory `shared`. Each host has its
    own copy of the folder `samples` in it."""

    def __init__(self, folder, rate):
        """`rate`: the rate of the links, in the words of tc, such as "4mbit"."""
        self.folder = pathlib.Path(folder)
        self.work = self.folder / "shared"
        (self.work / "samples").mkdir(parents=True)
        for number in (1, 2):
            (self.folder / f"tmp{number}").mkdir()
        cores = sorted(os.sched_getaffinity(0))
        self._script("enter", _ENTER, first=cores[0], last=cores[-1], all=",".join(map(str, cores)))
        self.agent = self._script("agent", _AGENT)
        for command in ("mount -t tmpfs none /run", "mount -t tmpfs none /dev/shm", "ip link set lo up",
                        "ip link add switch type bridge", "ip link set switch up"):
            subprocess.run(command.split(), check=True)
        for number in (1, 2):
            self._connect(number, rate)

    def _script(self, name, text, **fields):
        path = self.folder / name
        path.write_text(text.format(folder=self.folder, **fields))
        path.chmod(0o755)
        return path

    def _connect(self, number, rate):
        node, port = f"node{number}", f"port{number}"
        for command in (f"ip netns add {node}", f"ip link add {port} type veth peer name eth0 netns {node}",
                        f"ip link set {port} master switch", f"ip link set {port} up", f"ip -n {node} link set lo up",
                        f"ip -n {node} addr add 10.77.0.{number}/24 dev eth0", f"ip -n {node} link set eth0 up",
                        f"tc -n {node} qdisc add dev eth0 root tbf rate {rate} burst 10kb latency 10s"):
            subprocess.run(command.split(), check=True)
        # BBR is the default congestion control of some systems. On slow links of a machine under load, BBR becomes very
        # slow.
        reno = "echo reno > /proc/sys/net/ipv4/tcp_congestion_control"
        subprocess.run(["nsenter", f"--net=/run/netns/{node}", "sh", "-c", reno], check=True)

    def samples(self, number):
        """Returns the folder that host `number` sees as `samples` in its working directory."""
        return self.folder / f"samples{number}"

    def on(self, number, *command):
        """Returns the command line that runs a command on host `number`. If the number is "all", the command runs on
        host 1 and may use all cores."""
        return [str(self.folder / "enter"), str(number), *map(str, command)]

    def launch(self, mpi, *command):
        """Starts one process of the command on each host."""
        addresses = ("10.77.0.1", "10.77.0.2")
        if mpi == "openmpi":
            launcher = ["mpirun.openmpi", "--mca", "plm_rsh_agent", self.agent, "-H", ",".join(f"{one}:1" for one in addresses),
                        "--oversubscribe", "--bind-to", "none"]
        else:
            # docs/machines.md advises this option. Without it, mpiexec kills process 0 as soon as another process dies,
            # although process 0 still has to save.
            launcher = ["mpiexec.mpich", "-disable-auto-cleanup", "-launcher-exec", self.agent, "-hosts", ",".join(addresses), "-ppn", "1"]
        return subprocess.Popen(self.on(1, *launcher, *command), cwd=self.work, env=environment(), text=True, errors="replace",
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def cut(self, number):
        subprocess.run(["ip", "link", "set", f"port{number}", "down"], check=True)

    def heal(self, number):
        subprocess.run(["ip", "link", "set", f"port{number}", "up"], check=True)


class Process:
    """A process of this PID namespace that has not ended."""

    def __init__(self, pid):
        """Raises OSError if there is no such process, ValueError for a zombie."""
        self.pid = pid
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
        if status[status.rindex(")") + 2] in "ZX":
            raise ValueError
        self.program = os.path.realpath(f"/proc/{pid}/exe")
        self.network = os.stat(f"/proc/{pid}/ns/net").st_ino
        variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
        self.variables = dict(one.split("=", 1) for one in variables if "=" in one)

    def rank(self):
        return next((int(self.variables[name]) for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK") if name in self.variables), None)

    def lives(self):
        try:
            return Process(self.pid).program == self.program
        except (OSError, ValueError):
            return False

    def is_on(self, number):
        return self.network == os.stat(f"/run/netns/node{number}").st_ino

    def kill(self, number=signal.SIGKILL):
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass


def processes():
    """Returns the processes that the script has started, and all descendants of these processes."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                found.append(Process(int(name)))
            except (OSError, ValueError):
                pass
    return found
