// SPDX-License-Identifier: Apache-2.0
// Churns on the driver's own cuMemAlloc and cuMemFree, whoever they come from. With one more word, `forks`, a thread
// forks all the while.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/preload/guest/reuse/program.h"

namespace {

void fork_until(const std::atomic<bool>& done) {
    while (!done) {
        const pid_t child = fork();
        if (child == 0)
            _exit(0);
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            std::_Exit(4);
    }
}

}  // namespace

int main(int count, char** words) {
    if (count != reuse::kWords && count != reuse::kWords + 1)
        return 64;
    const reuse::Command command = reuse::read_command(words);
    const std::vector<CUcontext> places = reuse::make_places(command);
    const reuse::Memory memory{
        [](unsigned, CUdeviceptr* out, size_t bytes) { return cuMemAlloc(out, bytes); },
        [](CUdeviceptr address) { return cuMemFree(address); },
        [](CUdeviceptr address, CUstream stream) { return cuMemFreeAsync(address, stream); },
    };
    std::atomic<bool> done{count == reuse::kWords};
    std::thread forking(fork_until, std::cref(done));
    reuse::print(reuse::run(command, places, memory));
    done = true;
    forking.join();
    std::printf("\n");
    return 0;
}
