// SPDX-License-Identifier: Apache-2.0
#include "cli/settings/help.h"

#include <algorithm>

#include "cli/settings/help_options.h"
#include "cli/settings/own_options.h"
#include "cli/text/table.h"

namespace cuslice::cli {
namespace {

// Texts are written out where they are read; options come from the one list of keys.
constexpr std::string_view kWhole = R"(cuslice: a slice of a GPU for every CUDA program

Usage:
  cuslice run [options] -- program args   run a program in a slice
  cuslice demo [--json] [options]         fill a slice until it is refused
  cuslice devices [--json] [options]      list the GPUs that a program would see
  cuslice config [--json] [options]       print the settings in effect
  cuslice ps [--json|--prometheus]        list who holds, reserves and waits
  cuslice top [--once] [--json]           show GPUs, jobs and the queue, live
  cuslice set --group NAME --limit SIZE   change a running group's limit, or
                                          that of a --job
  cuslice stats PID [--json]              show what a program's caches hold
  cuslice plot FILE... [-o OUT]           draw recordings: HTML, SVG or PNG
  cuslice cdi [-o FILE] [options]         describe slices for containers
  cuslice jupyter install [options]       add a kernel that runs in a slice
  cuslice doctor [options] [-- program]   explain why a program gets no slice
  cuslice install --system [--root DIR]   limit every program of a machine
  cuslice uninstall --system              undo that
  cuslice completion bash|zsh|fish        print a script for this shell
  cuslice help [COMMAND]                  print this text, or a command's
  cuslice help options|values             explain all options, or their values
  cuslice version

Examples:
  cuslice run --fraction 0.4 -- python train.py
  cuslice run --limit 0=4GiB,1=1GiB -- ./a.out
  cuslice run --gpus 3,2 -- ./a.out       these GPUs, in this order
  cuslice run --split 0=4 -- ./a.out      four virtual GPUs out of one
  cuslice run --fake 4xh200 -- ./a.out    on a machine without a GPU

Each command has its own help: cuslice help run, or cuslice run --help
)";

constexpr std::string_view kRun = R"(Usage: cuslice run [options] -- program args

Runs a program in a slice of each GPU's memory. The program sees the slice as
the whole GPU, and an allocation past it fails as on a full GPU. The launcher
becomes the program (same process id), and every process that the program
starts is in a slice too.

Most used:
  --limit 4GiB     memory on each GPU, or for some GPUs 0=4GiB,1=2GiB
  --fraction 0.4   the same as a share of the GPU: 0.4 or 40%
  --gpus 3,2       the GPUs that the program sees, in this order
  --wait           queue until others have freed the memory
  --fake 4xh200    fake GPUs, on a machine without any

Examples:
  cuslice run --fraction 0.4 -- python train.py
  cuslice run --limit 4GiB -- ./a.out
  cuslice run --limit 0=4GiB,GPU-5f=2048MiB,0000:81:00.0=1GiB -- ./a.out
  cuslice run --gpus 3,2 --limit 3=4GiB -- ./a.out
  cuslice run --gpus any --fraction 0.4 --wait -- python train.py
  cuslice run --split 0=1GiB+rest -- ./a.out
  cuslice run --fake 2xa100-40g,1xt4 -- torchrun --nproc-per-node 3 train.py
)";

constexpr std::string_view kDemo = R"(Usage: cuslice demo [--json] [options]

Runs a small CUDA program in a slice. On each GPU that it sees, it allocates
until it is refused, draws what it got, and frees it all. It takes the options
of run; without a limit, a fraction or a split the limit is 1GiB, and without
an NVIDIA driver the GPU is a fake one. Inside cuslice run it fills the slice
that it is in.

Examples:
  cuslice demo
  cuslice demo --limit 4GiB --split 0=2
  cuslice demo --fake 2xt4 --fraction 0=0.4,1=0.25
)";

constexpr std::string_view kExitDemo = R"(
Exit codes: 0 every GPU was filled; 1 the program failed; otherwise those of
run.
)";

constexpr std::string_view kDevices = R"(Usage: cuslice devices [--json] [options]

Lists the GPUs that a program started with the same options would see: CUDA
ordinal, index in PCI order (by which settings name the GPU), name, UUID, PCI
id, total and free memory, the limit that the program sees as its total, and
where that limit came from.

Examples:
  cuslice devices
  cuslice devices --json --limit 0=4GiB
  cuslice devices --gpus 3,2
  cuslice devices --fake 4xh200
)";

constexpr std::string_view kConfigHelp = R"(Usage: cuslice config [--json] [options]
       cuslice config --explain PID [--json]

Prints the effective settings (per GPU where they differ), where each came
from, and which files were read or looked for. With --explain it prints the
rules of the system for a process instead: which one holds, and why none
before it does.

Examples:
  cuslice config
  cuslice config --json --limit 4GiB
  cuslice config --explain 812
)";

constexpr std::string_view kExitExplain = R"(
Exit codes: 0; 64 invalid command line; 69 no such process, or you may not
look at it; 78 invalid setting or rule.
)";

constexpr std::string_view kPs = R"(Usage: cuslice ps [--json|--prometheus|--wide] [options]
       cuslice ps --job NAME [--json] [options]

Lists every process of a job or a group, of all users: {columns}. Below are the waiting processes: position in the
GPU's queue, size, waiting time, and how often others went first (OVERTAKEN).
The tables are as wide as the terminal; the command is cut off, or printed
whole with --wide. A GPU of cuslice run --fake is marked as fake.

With --job it prints the most that this job has held on each GPU, also after
its end.

With --prometheus it prints gauges for the textfile collector of node_exporter,
per GPU and per job or group. Fake GPUs are in them with --fake alone.

Examples:
  cuslice ps
  cuslice ps --wide
  cuslice ps --json
  cuslice ps --prometheus
  cuslice ps --job slurm-42
)";

constexpr std::string_view kTop = R"(Usage: cuslice top [--interval TIME] [--once|--json|--stream] [options]
       cuslice top --nodes LIST [--over COMMAND] [--once] [--json]

Shows, and keeps showing, the GPUs of this machine: what is in use and
reserved on each, every job and group with its processes, who waits, and what
the caches of your processes hold. By keys, which ? lists, it sorts, filters,
folds and scrolls, and changes limits; q or Ctrl-C ends it. Where the output is
no terminal, it is one frame, as with --once. 0/2 is partition 2 of GPU 0.

With --nodes it asks several machines, each by a command such as ssh, which
runs cuslice there. A node that doesn't answer is shown with the reason,
and delays no other. Settings are handed on to the nodes.

Examples:
  cuslice top
  cuslice top --interval 5s
  cuslice top --json
  cuslice top --nodes "gpu[01-04],login"
  cuslice top --nodes @slurm
  cuslice top --nodes n1,n2 --over "ssh -p 2222 {}"
)";

constexpr std::string_view kExitTop = R"(
Exit codes: 0; 64 invalid command line; 69 no driver or no GPU, a ledger of
yours can't be read, or a node doesn't answer; 78 invalid setting.
)";

constexpr std::string_view kSet = R"(Usage: cuslice set --group NAME --limit SIZE
       cuslice set --job NAME --limit SIZE
       cuslice set --job NAME --share PERCENT [--share-cap PERCENT]

Changes the limit of one of your groups or jobs, named as in cuslice ps, on
every GPU, or on one with GPU-5f=4GiB. It applies to running programs from
their next allocation; no memory is taken away. The share of a GPU's time can
be changed of a job that was started with one, from its next turn on; that is
not measured on a GPU.

Examples:
  cuslice set --group lab --limit 8GiB
  cuslice set --job 812-1f00c3aa --share 40%
  cuslice set --job 812-1f00c3aa --limit GPU-5f1c=2GiB
)";

constexpr std::string_view kStats = R"(Usage: cuslice stats PID [--json] [options]

Shows, for one of your running processes with the allocator growth or
prealloc, what its caching allocators hold on each GPU: bytes allocated to the
program, bytes reserved from the driver, counters, and when these figures were
written.

Examples:
  cuslice stats 812
  cuslice stats --json 812
)";

constexpr std::string_view kPlot = R"(Usage: cuslice plot FILE... [-o OUT] [--title TEXT] [--open]

Draws what cuslice run --record has written: for each GPU its live memory over
time by the allocations' size, the bytes held, the limit, and each request that
was refused. Several files are one picture: of a run of several processes, name
FILE and every FILE.PID.

The picture is a web page, an SVG or a PNG, as OUT ends in .html, .svg or .png.
A file of that name is replaced. A page is one file that needs no network: drag
in it to zoom, and point at a moment to see its largest blocks.

This takes Python 3.8 or newer. An SVG and a PNG take a package too:
pip install vl-convert-python

Examples:
  cuslice run --limit 4GiB --record trace.csv -- python train.py
  cuslice plot trace.csv --open
  cuslice plot trace.csv --title "batch 64" -o batch-64.html
  cuslice plot trace.csv trace.csv.* -o memory.svg
)";

constexpr std::string_view kExitPlot = R"(
Exit codes: 0; 64 invalid command line; 65 a file is no recording, or has no
rows; 66 a file can't be read; 69 no Python, or no package for an SVG or PNG;
73 OUT can't be written. A page that no browser shows (--open) is no failure.
)";

constexpr std::string_view kCdi = R"(Usage: cuslice cdi [-o FILE] [options]

Writes a specification of the Container Device Interface (CDI), by which
Podman, Docker, containerd and CRI-O put a slice into a container: they mount
the installation and the ledgers' folder, and set the variables. Each
--fraction and each --limit is a device, cuslice/slice=VALUE; without any there
are tenths and quarters. Other options are for all devices. The programs of a
container share its slice, unless --per-process or --group says otherwise.

Examples:
  cuslice cdi -o /etc/cdi/cuslice.json
  cuslice cdi --fraction 0.25 --limit 4GiB --allocator growth
  podman run --device nvidia.com/gpu=0 --device cuslice/slice=0.25 IMAGE
)";

constexpr std::string_view kJupyter = R"(Usage: cuslice jupyter install [options]

Installs a kernel of Jupyter, whose notebooks run in a slice: it starts Python
under cuslice run with these options. Notebooks that run already are not
changed; in one, %load_ext cuslice and %slice 4GiB lower its limit.

The kernel goes to JUPYTER_DATA_DIR, else to ~/.local/share/jupyter, or below a
--prefix, such as that of a virtual environment or /usr/local. One of its name
is replaced; jupyter kernelspec remove takes it away.

Examples:
  cuslice jupyter install --limit 4GiB
  cuslice jupyter install --fraction 0.25 --python .venv/bin/python
)";

constexpr std::string_view kExitJupyter = R"(
Exit codes: 0; 64 invalid command line; 73 the kernel can't be written; 78
invalid configuration; 127 no such Python.
)";

constexpr std::string_view kExitCdi = R"(
Exit codes: 0; 64 invalid command line; 73 FILE can't be written; 78 invalid
setting.
)";

constexpr std::string_view kDoctor = R"(Usage: cuslice doctor [--json] [options] [-- program args]

Examines the set-up in which cuslice run would start a program with the same
options, and changes nothing: the installation, settings, driver and NVML, the
sharing folder, the container, what else is preloaded, and the program. A
paragraph for each: ok, warning (part of what was asked for won't work)
or problem (the program doesn't start, or gets no slice), with what to do.

Examples:
  cuslice doctor
  cuslice doctor --split 0=4 -- ./a.out
  cuslice doctor --json --fake 1xh200
)";

constexpr std::string_view kInstall = R"(Usage: cuslice install --system [--root DIR]

For administrators: puts a stub into /etc/ld.so.preload, so that every program
of this machine that uses CUDA gets the limits of the system's file
/etc/cuslice/cuslice.toml, whatever its environment. Other programs get
nothing. The stub is copied to /usr/lib/cuslice-system, with a link to this
installation beside it, and tried with /bin/true before the file is changed;
if /bin/true does not run afterwards, the file is put back.

Examples:
  cuslice install --system
  cuslice install --system --root /srv/image
)";

constexpr std::string_view kUninstall = R"(Usage: cuslice uninstall --system [--root DIR]

Takes what cuslice install --system has put there out of /etc/ld.so.preload,
and then the files away. Running programs keep their limits.

Examples:
  cuslice uninstall --system
)";

constexpr std::string_view kExitInstall = R"(
Exit codes: 0; 64 invalid command line; 69 not possible, and nothing was
changed; 78 this installation, or that in DIR, is not whole.
)";

constexpr std::string_view kExitRun = R"(
Exit codes: the program's own. If the program was not started: 64 invalid
command line; 75 others hold the memory; 78 invalid setting; 126 the program
can't be executed; 127 program not found.
)";
constexpr std::string_view kExitDevices = R"(
Exit codes: 0; 64 invalid command line; 69 no driver or no GPU; 78 invalid
setting.
)";
constexpr std::string_view kExitSet = R"(
Exit codes: 0; 64 invalid command line; 69 no such job or group; 78 invalid
setting.
)";
constexpr std::string_view kExitStats = R"(
Exit codes: 0; 64 invalid command line; 69 no such process, or it keeps no
cache; 78 invalid setting.
)";
constexpr std::string_view kExitDoctor = R"(
Exit codes: 0 nothing found; 1 a problem; 2 warnings alone; 64 invalid command
line.
)";

constexpr std::string_view kExitPs = R"(
Exit codes: 0; 64 invalid command line; 69 a ledger of yours can't be read, or
none here remembers the job; 78 invalid setting.
)";

struct Text {
    Command command;
    std::string_view start, exit_codes;
};
constexpr Text kTexts[] = {
    {Command::run, kRun, kExitRun},
    {Command::demo, kDemo, kExitDemo},
    {Command::devices, kDevices, kExitDevices},
    {Command::config, kConfigHelp, kExitExplain},
    {Command::ps, kPs, kExitPs},
    {Command::top, kTop, kExitTop},
    {Command::set, kSet, kExitSet},
    {Command::stats, kStats, kExitStats},
    {Command::plot, kPlot, kExitPlot},
    {Command::cdi, kCdi, kExitCdi},
    {Command::jupyter, kJupyter, kExitJupyter},
    {Command::install, kInstall, kExitInstall},
    {Command::uninstall, kUninstall, kExitInstall},
    {Command::doctor, kDoctor, kExitDoctor},
};

// The text with `columns` in the place of their mark, and the lines of that paragraph filled anew.
std::string with_columns(std::string_view text, std::string_view columns) {
    constexpr std::string_view kMark = "{columns}", kParagraph = "\n\n";
    const size_t mark = text.find(kMark);
    if (mark == text.npos)
        return std::string(text);
    const size_t start = text.rfind(kParagraph, mark) + kParagraph.size();
    const size_t end = text.find(kParagraph, mark);
    std::string paragraph(text.substr(start, mark - start));
    paragraph.append(columns).append(text.substr(mark + kMark.size(), end - mark - kMark.size()));
    std::ranges::replace(paragraph, '\n', ' ');
    return std::string(text.substr(0, start)).append(wrap(paragraph, 0)).append(text.substr(end + 1));
}

}  // namespace

std::string help_text(Command topic, Detail detail, std::string_view columns) {
    for (const Text& text : kTexts) {
        if (text.command != topic)
            continue;
        const std::string settings = detail == Detail::all ? options_text(topic) : options_in_short(topic);
        return with_columns(text.start, columns)
            .append(own_options_text(topic))
            .append(settings)
            .append(text.exit_codes);
    }
    return std::string(kWhole).append(detail == Detail::all ? options_text(Command::run) : "");
}

}  // namespace cuslice::cli
