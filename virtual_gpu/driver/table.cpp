#include "virtual_gpu/driver/table.h"

#include "virtual_gpu/driver/nvml_table.h"

extern "C" {
__attribute__((visibility("hidden"))) void* cuslice_driver_slots[cuslice::kFunctionCount] = {};
__attribute__((visibility("hidden"))) void* cuslice_nvml_slots[cuslice::kNvmlFunctionCount] = {};
__attribute__((visibility("hidden"))) void* cuslice_physical_nvml_slots[cuslice::kNvmlFunctionCount] = {};
__attribute__((visibility("hidden"))) constinit cuslice::ModuleRange cuslice_nvml_module{};
constinit thread_local const void* cuslice_inside_nvml = nullptr;
}
