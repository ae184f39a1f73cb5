#include "cli/unserved.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "cli/commands.h"
#include "config/handover.h"
#include "config/load.h"

namespace cuslice::cli {
namespace {

enum class Tool { hami, mps };

struct Unserved {
    Tool tool;
    std::string_view name;
    /// Values with which it asks for nothing.
    std::string_view harmless[3];
    std::string_view why;
};

constexpr std::string_view kMemoryAlone =
    "cuslice limits memory, not the time or the multiprocessors that a program gets";

constexpr Unserved kUnserved[] = {
    {Tool::hami, "CUDA_DEVICE_SM_LIMIT", {"", "0", "100"}, kMemoryAlone},
    {Tool::hami, "CUDA_TASK_PRIORITY", {"", "", ""}, kMemoryAlone},
    {Tool::hami,
     "CUDA_OVERSUBSCRIBE",
     {"", "false", "0"},
     "cuslice does not extend a GPU into host memory; an allocation past the limit fails"},
    {Tool::hami,
     "CUDA_DISABLE_CONTROL",
     {"", "false", "0"},
     "limits stay in force; unset CUDA_DEVICE_MEMORY_LIMIT, or start the program without cuslice run"},
    {Tool::hami,
     "ACTIVE_OOM_KILLER",
     {"", "false", "0"},
     "cuslice ends no program; an allocation past the limit fails"},
    {Tool::mps, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", {"", "100", "100.0"}, kMemoryAlone},
    {Tool::mps, "CUDA_MPS_CLIENT_PRIORITY", {"", "0", ""}, kMemoryAlone},
};

// HAMi is preloaded: by the variable, or for everybody by the loader's file.
bool has_hami(const Environment& environment) {
    std::ostringstream everybody;
    everybody << std::ifstream("/etc/ld.so.preload").rdbuf();
    const std::string lists[] = {environment.get("LD_PRELOAD").value_or(""), everybody.str()};
    return std::ranges::any_of(lists, [](const std::string& list) { return list.find("libvgpu.so") != list.npos; });
}

// Where its control daemon listens.
bool has_mps(const Environment& environment) {
    const std::string folder = environment.get("CUDA_MPS_PIPE_DIRECTORY").value_or("/tmp/nvidia-mps");
    return ::access((folder + "/control").c_str(), F_OK) == 0;
}

// HAMi's may have a GPU's number behind them.
bool is_named(std::string_view variable, const Unserved& unserved) {
    if (!variable.starts_with(unserved.name)) return false;
    const std::string_view rest = variable.substr(unserved.name.size());
    const bool numbered = unserved.tool == Tool::hami && rest.size() > 1 && rest[0] == '_' &&
                          std::ranges::all_of(rest.substr(1), [](char digit) { return is_digit(digit); });
    return rest.empty() || numbered;
}

}  // namespace

std::vector<ConfigError> find_unserved(const Environment& environment) {
    std::vector<ConfigError> found;
    if (environment.get(kHandOver)) return found;
    for (const std::string& line : environment.lines()) {
        const std::size_t equals = std::min(line.find('='), line.size());
        const std::string_view name = slice(line, 0, equals), value = slice(line, equals + 1);
        for (const Unserved& unserved : kUnserved) {
            if (!is_named(name, unserved) || std::ranges::count(unserved.harmless, value) != 0) continue;
            if (unserved.tool == Tool::hami ? has_hami(environment) : has_mps(environment)) continue;
            ConfigError notice;
            Reason why("has no effect here: ");
            notice.set(name, value, why.append(unserved.why).view());
            found.push_back(notice);
        }
    }
    return found;
}

void warn_unserved(const Environment& environment) {
    for (const ConfigError& notice : find_unserved(environment)) warn(notice);
}

}  // namespace cuslice::cli
