// SPDX-License-Identifier: Apache-2.0
// Prints the GPUs that CUDA shows under the environment it is started in.
//
//   devices            a line for each: ordinal, name, UUID, total memory
//   devices about      the first GPU and the driver, as `key value` lines for the record's head
//   devices count      "2 (GPU-…, GPU-…)", or the error that cuInit or the count gave
#include <dlfcn.h>

#include <cstring>

#include "lab/hardware/driver.h"
#include "lab/hardware/management.h"
#include "lab/hardware/text.h"

using namespace cuslice::check;

namespace {

std::string uuid_start(CUdevice device) {
    CUuuid uuid{};
    MUST(cuDeviceGetUuid_v2, &uuid, device);
    char text[16];
    std::snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x…", static_cast<unsigned char>(uuid.bytes[0]),
                  static_cast<unsigned char>(uuid.bytes[1]), static_cast<unsigned char>(uuid.bytes[2]),
                  static_cast<unsigned char>(uuid.bytes[3]));
    return text;
}

int print_count() {
    int count = 0;
    CUresult result = CU(cuInit)(0);
    if (result == CUDA_SUCCESS)
        result = CU(cuDeviceGetCount)(&count);
    if (result != CUDA_SUCCESS)
        return std::printf("%s\n", name_of(result)), 0;
    std::string list;
    for (int i = 0; i < count; i++)
        list += (i ? ", " : " (") + uuid_start(i);
    std::printf("%d%s%s\n", count, list.c_str(), count ? ")" : "");
    return 0;
}

int print_about() {
    const Gpu gpu = find_gpu();
    int version = 0, major = 0, minor = 0;
    size_t total = 0;
    MUST(cuDriverGetVersion, &version);
    MUST(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu.device);
    MUST(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu.device);
    MUST(cuDeviceTotalMem_v2, &total, gpu.device);
    Dl_info file{};
    dladdr(find("cuInit"), &file);
    std::printf("GPU %s\nuuid %s\ncapability %d.%d\nmemory %s\ndriver %s\nCUDA %d.%d\nfile %s\n", gpu.name, gpu.uuid,
                major, minor, mib(total).c_str(), driver_version().c_str(), version / 1000, version % 1000 / 10,
                file.dli_fname);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "count")
        return print_count();
    if (what == "about")
        return print_about();
    int count = 0;
    MUST(cuInit, 0);
    MUST(cuDeviceGetCount, &count);
    for (int i = 0; i < count; i++) {
        char name[128] = {};
        size_t total = 0;
        MUST(cuDeviceGetName, name, sizeof name, i);
        MUST(cuDeviceTotalMem_v2, &total, i);
        std::printf("%d %s %s %s\n", i, name, uuid_start(i).c_str(), mib(total).c_str());
    }
    return count > 0 ? 0 : 1;
}
