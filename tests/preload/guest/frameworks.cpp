// SPDX-License-Identifier: Apache-2.0
// Asks for memory as the allocators of TensorFlow and JAX do, by their documented behaviour: a bound from what is free
// or there, less a reserve that variables may name; then one region of that size or regions that double, each a tenth
// smaller until it is granted; or memory pools; or physical memory that is mapped.
//
// Does what it reads from its input, a line at a time, and answers each with a line: a CUresult, and figures in bytes.
#include <cuda.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

namespace {

constexpr size_t kMiB = 1 << 20;
// Below this nothing more is asked for.
constexpr size_t kSmallest = kMiB;

struct Figures {
    CUresult result = CUDA_SUCCESS;
    size_t bound = 0;
    size_t got = 0;
};

// Reserve in bytes that TensorFlow leaves on a GPU with `free` bytes free.
size_t tensorflow_reserve(size_t free, CUdevice device) {
    if (const char* said = std::getenv("TF_DEVICE_MIN_SYS_MEMORY_IN_MB"))
        return std::stoull(said) * kMiB;
    if (free < 2048 * kMiB)
        return 225 * kMiB;
    int major = 0;
    cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (major <= 6)
        return 500 * kMiB;
    if (major == 7)
        return 1050 * kMiB;
    return (major == 8 ? 1536 : 1800) * kMiB;
}

Figures tensorflow_bound(CUdevice device) {
    size_t free = 0, total = 0;
    Figures figures;
    figures.result = cuMemGetInfo(&free, &total);
    const size_t reserve = tensorflow_reserve(free, device);
    figures.bound = reserve < free ? free - reserve : free;
    return figures;
}

Figures jax_bound(CUdevice) {
    size_t free = 0, total = 0;
    Figures figures;
    figures.result = cuMemGetInfo(&free, &total);
    const char* said = std::getenv("XLA_PYTHON_CLIENT_MEM_FRACTION");
    figures.bound = static_cast<size_t>(static_cast<double>(total) * (said ? std::stod(said) : 0.75));
    return figures;
}

// One region, of this size or of what is granted instead.
size_t region(size_t size) {
    for (; size >= kSmallest; size = size / 10 * 9) {
        CUdeviceptr block = 0;
        if (cuMemAlloc(&block, size) == CUDA_SUCCESS)
            return size;
    }
    return 0;
}

Figures at_once(Figures figures) {
    figures.got = region(figures.bound);
    return figures;
}

Figures by_doubling(Figures figures) {
    for (size_t next = 2 * kMiB; figures.bound - figures.got >= kSmallest; next *= 2) {
        const size_t granted = region(std::min(next, figures.bound - figures.got));
        if (granted == 0)
            break;
        figures.got += granted;
    }
    return figures;
}

// Pieces of these sizes, until the smallest is refused.
Figures in_pieces(const std::function<CUresult(size_t)>& take) {
    Figures figures;
    for (const size_t size : {64 * kMiB, 16 * kMiB, 2 * kMiB})
        while ((figures.result = take(size)) == CUDA_SUCCESS)
            figures.got += size;
    return figures;
}

CUresult from_pool(size_t size) {
    CUdeviceptr block = 0;
    return cuMemAllocAsync(&block, size, nullptr);
}

CUresult mapped(size_t size, CUdevice device) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    CUmemGenericAllocationHandle piece = 0;
    CUresult result = cuMemCreate(&piece, size, &properties, 0);
    if (result != CUDA_SUCCESS)
        return result;
    CUdeviceptr address = 0;
    result = cuMemAddressReserve(&address, size, 0, 0, 0);
    if (result == CUDA_SUCCESS)
        result = cuMemMap(address, size, 0, piece, 0);
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return result == CUDA_SUCCESS ? cuMemSetAccess(address, size, &access, 1) : result;
}

CUresult open(CUdevice device) {
    CUcontext context = nullptr;
    CUresult result = cuInit(0);
    if (result == CUDA_SUCCESS)
        result = cuDevicePrimaryCtxRetain(&context, device);
    return result == CUDA_SUCCESS ? cuCtxSetCurrent(context) : result;
}

Figures tensorflow(CUdevice device) {
    const char* growth = std::getenv("TF_FORCE_GPU_ALLOW_GROWTH");
    const Figures bound = tensorflow_bound(device);
    return growth && growth == std::string("true") ? by_doubling(bound) : at_once(bound);
}

}  // namespace

int main() {
    const std::map<std::string, std::function<Figures(CUdevice)>> commands = {
        {"open",
         [](CUdevice device) {
             return Figures{open(device), 0, 0};
         }},
        {"tensorflow", tensorflow},
        {"jax", [](CUdevice device) { return at_once(jax_bound(device)); }},
        {"pool", [](CUdevice) { return in_pieces(from_pool); }},
        {"mapped", [](CUdevice device) { return in_pieces([=](size_t size) { return mapped(size, device); }); }},
    };
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string command;
        CUdevice device = 0;
        words >> command >> device;
        if (command == "pid") {
            std::cout << getpid() << std::endl;
            continue;
        }
        const Figures figures = commands.at(command)(device);
        std::cout << figures.result << ' ' << figures.bound << ' ' << figures.got << std::endl;
    }
    return 0;
}
