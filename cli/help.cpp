#include "cli/commands.h"
#include "cli/table.h"

namespace cuslice::cli {
namespace {

// Texts are written out where they are read; options, variables and defaults come from the one list of keys.
constexpr std::string_view kWhole = R"(cuslice: a slice of a GPU for every CUDA program

Usage:
  cuslice run [options] -- program args   start a program in a slice
  cuslice devices [--json] [options]      list the GPUs that such a program would see
  cuslice config [--json] [options]       print the settings that hold, and where each came from
  cuslice ps [--json]                     list who holds and reserves how much of which GPU, and who waits for it
  cuslice set --group NAME --limit SIZE   change the limit of a group, or of a --job, that is running
  cuslice stats PID [--json]              show what a running program's caching allocators hold
  cuslice --version

Examples:
  cuslice run --fraction 0.4 -- python train.py
  cuslice run --limit 0=4GiB,1=1GiB -- ./a.out
  cuslice run --gpus 3,2 -- ./a.out       these GPUs, in this order
  cuslice run --split 0=4 -- ./a.out      four virtual GPUs out of one
  cuslice run --fake 4xh200 -- ./a.out    on a machine without a GPU

Each command explains itself: cuslice run --help
)";

constexpr std::string_view kRun = R"(Usage: cuslice run [options] -- program args

Starts a program that gets a slice of each GPU's memory: it sees the slice as the whole, and an allocation past it fails as on
a full GPU. The launcher becomes the program (same process id); what the program starts is in a slice too.

Examples:
  cuslice run --fraction 0.4 -- python train.py
  cuslice run --limit 4GiB -- ./a.out
  cuslice run --limit 0=4GiB,GPU-5f=2048MiB,0000:81:00.0=1GiB -- ./a.out
  cuslice run --gpus 3,2 --limit 3=4GiB -- ./a.out
  cuslice run --gpus any --fraction 0.4 --wait -- python train.py
  cuslice run --split 0=1GiB+rest -- ./a.out
  cuslice run --log info --fake 2xa100-40g,1xt4 -- torchrun --nproc-per-node 3 train.py
)";

constexpr std::string_view kDevices = R"(Usage: cuslice devices [--json] [options]

Lists the GPUs that a program started with the same options would see: its CUDA ordinal, the GPU's index in PCI order (by which
settings name it), name, UUID, PCI id, total and free memory, the limit that the program sees as its total, and where that
limit came from.

Examples:
  cuslice devices
  cuslice devices --json --limit 0=4GiB
  cuslice devices --gpus 3,2
  cuslice devices --fake 4xh200
)";

constexpr std::string_view kConfigHelp = R"(Usage: cuslice config [--json] [options]

Prints the settings that hold, per GPU where they are set so, where each came from, and which files were looked at.

Examples:
  cuslice config
  cuslice config --json --limit 4GiB
)";

constexpr std::string_view kPs = R"(Usage: cuslice ps [--json] [options]

Lists every process that is part of a job or a group, of all users: what it holds, what its job or group holds together, what is
reserved for it and its limit, since when it is there, and how long ago it last took memory (IDLE).
Below are those that wait: at which place in the GPU's queue, for how much, since when, and how often they were passed.

Examples:
  cuslice ps
  cuslice ps --json
)";

constexpr std::string_view kSet = R"(Usage: cuslice set --group NAME --limit SIZE
       cuslice set --job NAME --limit SIZE

Gives a group or a job of yours, named as cuslice ps names it, another limit on every GPU, or with GPU-5f=4GiB on one. Programs that run
are held to it from their next allocation on; nothing is taken away from them.

Examples:
  cuslice set --group lab --limit 8GiB
  cuslice set --job 812-1f00c3aa --limit GPU-5f1c=2GiB
)";

constexpr std::string_view kStats = R"(Usage: cuslice stats PID [--json] [options]

Shows what the caching allocators of a running process of yours hold on each GPU, where its allocator is growth or prealloc, and what they
have done: bytes that the program holds, bytes that they have from the driver, and when these figures were written.

Examples:
  cuslice stats 812
  cuslice stats --json 812
)";

constexpr std::string_view kValues = R"(
A size needs its unit, in any case: KiB MiB GiB TiB (Ki or K is the same as KiB, and so on; KB MB GB TB are powers of 1000). A fraction is above 0 and at
most 1, or a percentage. A GPU is named by the index that cuslice devices and nvidia-smi print, the start of its UUID, its
PCI id, or * for every GPU, whatever --gpus and CUDA_VISIBLE_DEVICES make of them. fraction and limit for the same GPU from one
source are an error. --gpus chooses among what CUDA_VISIBLE_DEVICES leaves; what the program sets itself counts in its list.

Sources, strongest first: options, CUSLICE_* variables, the file of --config or CUSLICE_CONFIG, ./cuslice.toml,
~/.config/cuslice/cuslice.toml ($XDG_CONFIG_HOME), /etc/cuslice/cuslice.toml, CUDA_DEVICE_MEMORY_LIMIT[_i] (HAMi),
CUDA_MPS_PINNED_DEVICE_MEM_LIMIT (MPS). The system's file may set ceilings, which nothing raises.
)";

constexpr std::string_view kExitRun = R"(
Exit codes: the program's own; 64 the command line is not understood; 75 the slice is taken by others; 78 a setting is wrong;
nothing was started then; 126 the program was found but cannot be started; 127 there is no such program.
)";
constexpr std::string_view kExitDevices = R"(
Exit codes: 0; 64 the command line is not understood; 69 there is no driver or no GPU; 78 a setting is wrong.
)";
constexpr std::string_view kExitSet = R"(
Exit codes: 0; 64 the command line is not understood; 69 there is no such job or group; 78 a setting is wrong.
)";
constexpr std::string_view kExitStats = R"(
Exit codes: 0; 64 the command line is not understood; 69 there is no such process, or it keeps no cache; 78 a setting is wrong.
)";
constexpr std::string_view kExitConfig = R"(
Exit codes: 0; 64 the command line is not understood; 78 a setting is wrong.
)";

// A table of a command's options, each with its explanation on the next line.
std::string options_text(Command command) {
    std::vector<std::vector<std::string>> rows = {{"Option", "Variable", "Default", ""}};
    for (const KeyTraits& traits : all_keys()) {
        if (!takes(command, traits.key)) continue;
        std::string option = "  --";
        option.append(traits.name);
        if (traits.stands_alone)
            option.append("[=").append(traits.placeholder).append("]");
        else
            option.append(" ").append(traits.placeholder);
        rows.push_back({option, std::string(traits.variable), std::string(traits.default_value), ""});
        rows.push_back({"      " + std::string(traits.help), "", "", ""});
    }
    // The explanations are lines of their own: they must not widen the first column.
    std::vector<std::vector<std::string>> columns;
    for (std::size_t i = 0; i < rows.size(); i = i == 0 ? 1 : i + 2) columns.push_back(rows[i]);
    const std::string table = format_table(columns);
    std::string text = "\n";
    std::size_t at = table.find('\n') + 1;
    text.append(table, 0, at);
    for (std::size_t i = 2; i < rows.size(); i += 2) {
        const std::size_t end = table.find('\n', at) + 1;
        text.append(table, at, end - at).append(rows[i][0]).append("\n");
        at = end;
    }
    return text;
}

}  // namespace

std::string help_text(Command topic) {
    std::string text;
    switch (topic) {
        case Command::run:
            return text.append(kRun).append(options_text(topic)).append(kValues).append(kExitRun);
        case Command::devices:
            text.append(kDevices).append(options_text(topic)).append("  --json\n      print JSON\n");
            return text.append(kValues).append(kExitDevices);
        case Command::config:
            text.append(kConfigHelp).append(options_text(topic)).append("  --json\n      print JSON\n");
            return text.append(kValues).append(kExitConfig);
        case Command::ps:
            text.append(kPs).append(options_text(topic)).append("  --json\n      print JSON\n");
            return text.append(kExitConfig);
        case Command::set:
            text.append(kSet).append(options_text(topic));
            return text.append("  --job NAME\n      the job, as cuslice ps names it\n").append(kExitSet);
        case Command::stats:
            text.append(kStats).append(options_text(topic)).append("  --json\n      print JSON\n");
            return text.append(kExitStats);
        default:
            return text.append(kWhole);
    }
}

}  // namespace cuslice::cli
