// Churns on the driver's own cuMemAlloc and cuMemFree, whoever they come from.
#include "tests/preload/guest/reuse/program.h"

int main(int count, char** words) {
    if (count != reuse::kWords) return 64;
    const reuse::Command command = reuse::read_command(words);
    const std::vector<CUcontext> places = reuse::make_places(command);
    const reuse::Memory memory{
        [](unsigned, CUdeviceptr* out, std::size_t bytes) { return cuMemAlloc(out, bytes); },
        [](CUdeviceptr address) { return cuMemFree(address); },
    };
    reuse::print(reuse::run(command, places, memory));
    std::printf("\n");
    return 0;
}
