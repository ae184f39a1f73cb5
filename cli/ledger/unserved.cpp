// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/unserved.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "cli/text/report.h"
#include "config/handover.h"
#include "config/load.h"
#include "config/unserved.h"

namespace cuslice::cli {
namespace {

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

// A limit of memory, from whichever tool: KAI's plugin for HAMi-core sets HAMi's.
bool has_limit(const Environment& environment) {
    for (const char* name :
         {"CUDA_DEVICE_MEMORY_LIMIT", "CUDA_DEVICE_MEMORY_LIMIT_0", "CUSLICE_LIMIT", "CUSLICE_FRACTION"})
        if (!environment.get(name).value_or("").empty())
            return true;
    return false;
}

bool is_served(OtherTool tool, const Environment& environment) {
    switch (tool) {
        case OtherTool::hami:
            return has_hami(environment);
        case OtherTool::mps:
            return has_mps(environment);
        case OtherTool::kai:
            return has_limit(environment);
    }
    return false;
}

}  // namespace

std::vector<ConfigError> find_unserved(const Environment& environment) {
    std::vector<ConfigError> found;
    if (environment.get(kHandOver))
        return found;
    for (const std::string& line : environment.lines()) {
        const size_t equals = std::min(line.find('='), line.size());
        const std::string_view name = slice(line, 0, equals), value = slice(line, equals + 1);
        const Unserved* const unserved = cuslice::find_unserved(name, value);
        if (unserved == nullptr)
            continue;
        if (is_served(unserved->tool, environment))
            continue;
        ConfigError notice;
        Reason why("has no effect here: ");
        notice.set(name, value, why.append(unserved->why));
        found.push_back(notice);
    }
    return found;
}

void warn_unserved(const Environment& environment) {
    for (const ConfigError& notice : find_unserved(environment))
        warn(notice);
}

}  // namespace cuslice::cli
