// cuslice_fake_check: what the launcher asks before it starts a program.

#include <cstdio>
#include <string>

#include "virtual_gpu/fake/spec/machine.h"

/// 0 if the spec is one that CUSLICE_FAKE may hold; else 1 and the whole message in `message`, cut to `size` bytes.
extern "C" __attribute__((visibility("default"))) int cuslice_fake_check(const char* spec, char* message, size_t size) {
    using namespace cuslice::fake;
    MachineSpec machine;
    std::string error;
    const bool good = spec != nullptr && parse_machine(spec, profile_folder(), machine, error);
    if (spec == nullptr) error = "no fake GPU is named";
    if (message != nullptr && size > 0) std::snprintf(message, size, "%s", good ? "" : error.c_str());
    return good ? 0 : 1;
}
