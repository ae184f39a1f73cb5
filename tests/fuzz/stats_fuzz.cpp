// SPDX-License-Identifier: Apache-2.0
// The figures that a process says of its caches, with anything in their place, as `cuslice stats` shows them.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cli/ledger/read_stats.h"
#include "policy/stats/file.h"

using namespace cuslice;

namespace {

void expect(bool holds) {
    if (!holds)
        std::abort();
}

const std::string& folder() {
    static const std::string made = [] {
        char name[] = "/dev/shm/cuslice-fuzz-XXXXXX";
        const std::string path = mkdtemp(name);
        static std::string at_exit = path;
        std::atexit([] { std::system(("rm -rf " + at_exit).c_str()); });
        return path;
    }();
    return made;
}

// This process's file, with figures of two GPUs.
stats::File& own() {
    static stats::File& made = [&]() -> stats::File& {
        ledger::LedgerError why;
        stats::File* const file = stats::make_own(folder().c_str(), &why);
        expect(file != nullptr);
        for (int i = 0; i < 2; i++) {
            std::strcpy(file->gpus[i].uuid, "GPU-fuzz");
            std::strcpy(file->gpus[i].name, "NVIDIA Fuzz");
            file->gpus[i].sequence.store(2);
        }
        return *file;
    }();
    return made;
}

// The place in the file that an offset of 16 bits stands for: the lower half lies anywhere, the upper half in the first
// GPU's figures, which are shown.
size_t place_of(uint32_t offset) {
    const bool anywhere = offset < 1 << 15;
    return anywhere ? offset % sizeof(stats::File) : offsetof(stats::File, gpus) + offset % sizeof(stats::Gpu);
}

// Milliseconds since the machine began.
uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000 + static_cast<uint64_t>(time.tv_nsec) / 1'000'000;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    auto* const bytes = reinterpret_cast<char*>(&own());
    static const std::string whole(bytes, sizeof(stats::File));
    std::memcpy(bytes, whole.data(), whole.size());
    // Pieces of the input over it: {offset, 2 bytes; length; bytes}, as often as there are some.
    while (size > 3) {
        const size_t offset = place_of(data[0] | data[1] << 8);
        const size_t length = std::min({size_t{data[2]}, size - 3, whole.size() - offset});
        std::memcpy(bytes + offset, data + 3, length);
        data += 3 + length;
        size -= 3 + length;
    }
    const cli::ProcessStats found = cli::read_stats(folder(), getpid());
    expect(found.failure.empty() || found.gpus.empty());
    expect(found.gpus.size() <= stats::kGpus);
    for (cli::GpuStats gpu : found.gpus) {
        expect(!cli::mode_of(gpu).empty());
        expect(gpu.uuid.size() <= sizeof stats::Gpu::uuid && gpu.name.size() <= sizeof stats::Gpu::name);
        expect(gpu.milliseconds <= now());
        cli::json_text(cli::json_of(gpu));
        for (gpu.mode = 0; gpu.mode < 8; gpu.mode++)  // up to the last that has a name, and beyond
            expect(!cli::mode_of(gpu).empty());
    }
    return 0;
}
