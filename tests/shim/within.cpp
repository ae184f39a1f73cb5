// SPDX-License-Identifier: Apache-2.0
#include "tests/shim/within.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/skip.h"

#ifdef __SANITIZE_ADDRESS__
// The fake driver keeps memory until its process ends: that is no leak.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

namespace cuslice::tests {

namespace {

struct Folder {
    Folder() {
        char name[] = "/tmp/cuslice-test-XXXXXX";
        path = mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string path;
};

const Folder& folder() {
    static const Folder made;
    return made;
}
std::string log_file() { return folder().path + "/said"; }

}  // namespace

Within::Within(const Variables& settings, const std::string& gpus) {
    static std::optional<std::pair<Variables, std::string>> first;
    const auto now = std::pair(settings, gpus);
    fits_ = !first || *first == now;
    if (!fits_)
        skip("another case has set this process up in another way");
    if (first)
        return;
    first = now;
    std::string machine = gpus;
    if (gpus.find('\n') != std::string::npos)
        std::ofstream(machine = folder().path + "/gpus.toml") << gpus;
    Variables all = {{"CUSLICE_FAKE", machine},
                     {"CUSLICE_FAKE_DIR", folder().path},
                     {"CUSLICE_LIMIT", "1GiB"},
                     {"CUSLICE_HEADROOM", "16MiB"},
                     {"CUSLICE_LOG", "info:" + log_file()}};
    all.insert(all.end(), settings.begin(), settings.end());
    for (auto& [name, value] : all) {
        if (name == "CUSLICE_RECORD")
            value = folder().path + "/" + value;
        value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    }
    REQUIRE(cuInit(0) == CUDA_SUCCESS);
}

CUcontext Within::use(CUdevice device) {
    CUcontext context = nullptr;
    REQUIRE(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
    REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    return context;
}

CUdeviceptr Within::allocate(size_t bytes) {
    CUdeviceptr address = 0;
    REQUIRE(cuMemAlloc_v2(&address, bytes) == CUDA_SUCCESS);
    return address;
}

std::vector<std::string> Within::said() {
    static size_t known = 0;
    std::vector<std::string> lines;
    std::ifstream in(log_file());
    size_t count = 0;
    for (std::string line; std::getline(in, line); count++)
        if (count >= known)
            lines.push_back(line.substr(line.find(": ") + 2));
    known = count;
    return lines;
}

}  // namespace cuslice::tests
