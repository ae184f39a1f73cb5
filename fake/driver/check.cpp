// SPDX-License-Identifier: Apache-2.0
// cuslice_fake_check: what the launcher asks before it starts a program.

#include <cstdio>
#include <string>

#include "fake/spec/machine.h"

/// 0 if the spec is one that CUSLICE_FAKE may hold, and in `message` a line for each GPU, its UUID and the bytes of a
/// context on it; else 1 and the whole reason in `message`. Cut to `size` bytes.
extern "C" __attribute__((visibility("default"))) int cuslice_fake_check(const char* spec, char* message, size_t size) {
    using namespace cuslice::fake;
    MachineSpec machine;
    std::string error;
    const bool good = spec != nullptr && parse_machine(spec, profile_folder(), machine, error);
    if (spec == nullptr)
        error = "no fake GPU is named";
    std::string contexts;
    if (good)
        for (const GpuSpec& gpu : machine)
            contexts += uuid_text(gpu) + ' ' + std::to_string(gpu.context) + "\n";
    if (message != nullptr && size > 0)
        std::snprintf(message, size, "%s", (good ? contexts : error).c_str());
    return good ? 0 : 1;
}
