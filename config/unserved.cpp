// SPDX-License-Identifier: Apache-2.0
#include "config/unserved.h"

#include "config/text.h"

namespace cuslice {
namespace {

constexpr std::string_view kNoPolicy = "cuslice limits memory, and shares out time by --share alone";

constexpr std::string_view kNoServer =
    "there is no MPS server, and cuslice doesn't limit multiprocessors; --share gives a part of the GPU's time";

constexpr std::string_view kShareAlone =
    "KAI-Scheduler's share limits nothing by itself; set CUSLICE_LIMIT or CUSLICE_FRACTION";

constexpr Unserved kUnserved[] = {
    {OtherTool::hami, "CUDA_TASK_PRIORITY", {"", "", ""}, kNoPolicy},
    {OtherTool::hami, "GPU_CORE_UTILIZATION_POLICY", {"", "default", "disable"}, kNoPolicy},
    {OtherTool::hami,
     "CUDA_OVERSUBSCRIBE",
     {"", "false", "0"},
     "cuslice does not extend a GPU into host memory; an allocation past the limit fails"},
    {OtherTool::hami,
     "CUDA_DISABLE_CONTROL",
     {"", "false", "0"},
     "limits stay in force; unset CUDA_DEVICE_MEMORY_LIMIT, or start the program without cuslice run"},
    {OtherTool::hami,
     "ACTIVE_OOM_KILLER",
     {"", "false", "0"},
     "cuslice ends no program; an allocation past the limit fails"},
    {OtherTool::mps, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", {"", "100", "100.0"}, kNoServer},
    {OtherTool::mps, "CUDA_MPS_CLIENT_PRIORITY", {"", "0", ""}, kNoPolicy},
    {OtherTool::kai, "GPU_MEMORY_LIMIT", {"", "0", ""}, kShareAlone},
    {OtherTool::kai, "GPU_PORTION", {"", "1", "0"}, kShareAlone},
};

bool is_named(std::string_view variable, const Unserved& unserved) {
    if (!starts_with(variable, unserved.name))
        return false;
    const std::string_view rest = slice(variable, unserved.name.size());
    if (rest.empty())
        return true;
    if (unserved.tool != OtherTool::hami || rest.size() < 2 || rest[0] != '_')
        return false;
    for (const char digit : slice(rest, 1))
        if (!is_digit(digit))
            return false;
    return true;
}

}  // namespace

const Unserved* find_unserved(std::string_view name, std::string_view value) {
    for (const Unserved& unserved : kUnserved) {
        if (!is_named(name, unserved))
            continue;
        for (const std::string_view harmless : unserved.harmless)
            if (value == harmless)
                return nullptr;
        return &unserved;
    }
    return nullptr;
}

}  // namespace cuslice
