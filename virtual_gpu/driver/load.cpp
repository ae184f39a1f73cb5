#include "virtual_gpu/driver/load.h"

#include <cstdio>

#include "virtual_gpu/driver/libc.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice {

namespace {

// Other threads may be jumping through the table already, hence the atomic stores.
void fill(void* handle, void** slots, const char* symbol, std::size_t index) {
    __atomic_store_n(&slots[index], dlsym(handle, symbol), __ATOMIC_RELEASE);
}

}  // namespace

bool load_driver(const char* explicit_path, char* text, std::size_t size) {
    void* handle = open_real_library("libcuda.so.1", explicit_path, text, size);
    if (!handle) return false;
    for (std::size_t i = 0; i < kFunctionCount; i++) fill(handle, cuslice_driver_slots, kFunctions[i].symbol, i);
    return true;
}

bool load_nvml(const char* beside, char* text, std::size_t size) {
    const InsideNvml inside;  // its constructors may call its functions
    void* handle = nullptr;
    char path[4096];
    if (beside && std::snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", beside) < static_cast<int>(sizeof(path)))
        handle = open_real_library("libnvidia-ml.so.1", path, text, size);
    if (!handle) handle = open_real_library("libnvidia-ml.so.1", nullptr, text, size);
    if (!handle) return false;
    for (std::size_t i = 0; i < kNvmlFunctionCount; i++)
        fill(handle, cuslice_physical_nvml_slots, kNvmlFunctions[i], i);
    const ModuleRange module = range_of_module(handle);
    __atomic_store_n(&cuslice_nvml_module.begin, module.begin, __ATOMIC_RELEASE);
    __atomic_store_n(&cuslice_nvml_module.size, module.size, __ATOMIC_RELEASE);
    return true;
}

void publish_nvml() {
    for (std::size_t i = 0; i < kNvmlFunctionCount; i++)
        __atomic_store_n(&cuslice_nvml_slots[i], cuslice_physical_nvml_slots[i], __ATOMIC_RELEASE);
}

}  // namespace cuslice
