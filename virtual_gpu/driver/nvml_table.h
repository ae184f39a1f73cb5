// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "virtual_gpu/driver/inside_nvml.h"
#include "virtual_gpu/driver/module_range.h"
#include "virtual_gpu/driver/names.h"
#include "virtual_gpu/driver/nvml.h"

// Where the real NVML lies, once it is loaded. Its entrance (shim/nvml/stubs_x86_64.S) looks at it, hence the plain
// name.
extern "C" cuslice::ModuleRange cuslice_nvml_module;

namespace cuslice {

// NVML's functions as an index into the table below, as driver/table.h does for the driver.
enum class NvmlFunction : uint16_t {
#define CUSLICE_NVML_FUNCTION(name, split) name,
#include "virtual_gpu/driver/nvml_functions.def"
};

// For what is worked out when this is compiled.
inline constexpr auto kNvmlFunctionRows = std::to_array<std::string_view>({
#define CUSLICE_NVML_FUNCTION(name, split) #name,
#include "virtual_gpu/driver/nvml_functions.def"
});
inline constexpr size_t kNvmlFunctionCount = kNvmlFunctionRows.size();
inline constexpr auto kNvmlFunctions = names<[] { return kNvmlFunctionRows; }>();

// The real library's addresses, as far as they have been asked for.
extern "C" void* cuslice_physical_nvml_slots[kNvmlFunctionCount];
// Targets of calls to NVML: the same addresses or, where GPUs are split, the code that stands before them
// (virtual_gpu/split/nvml.h).
extern "C" void* cuslice_nvml_slots[kNvmlFunctionCount];

class LoadedObject;

// As open_driver_table(), for what lies in the real library. Nobody's calls go there yet.
void open_nvml_table(const LoadedObject& library);
// From now on calls of NVML's go to the real library.
void publish_nvml();

// As look_up_driver_function(): fills a slot of the first table, or of both.
void* look_up_physical_nvml_function(size_t function);
void* look_up_nvml_function(size_t function);

// Null where the library lacks the function, and until it is loaded (the second: until calls may go to it).
inline void* physical_nvml_slot(size_t function) {
    void* const known = __atomic_load_n(&cuslice_physical_nvml_slots[function], __ATOMIC_ACQUIRE);
    return known ? known : look_up_physical_nvml_function(function);
}
inline void* physical_nvml_slot(NvmlFunction function) { return physical_nvml_slot(static_cast<size_t>(function)); }
inline void* nvml_slot(size_t function) {
    void* const known = __atomic_load_n(&cuslice_nvml_slots[function], __ATOMIC_ACQUIRE);
    return known ? known : look_up_nvml_function(function);
}

namespace detail {

template <typename... Arguments>
struct RealNvmlFunction {
    void* slot;

    nvmlReturn_t operator()(Arguments... arguments) const {
        if (!slot)
            return NVML_ERROR_FUNCTION_NOT_FOUND;
        const InsideNvml inside;
        return reinterpret_cast<nvmlReturn_t (*)(Arguments...)>(slot)(arguments...);
    }
};

template <typename... Arguments>
RealNvmlFunction<Arguments...> real_nvml_function(nvmlReturn_t (*)(Arguments...), void* slot) {
    return {slot};
}

}  // namespace detail

}  // namespace cuslice

// CUSLICE_REAL_NVML(nvmlInit_v2)(): what a call of this function goes to, with the type that nvml.h gives it.
#define CUSLICE_REAL_NVML(name)                                                     \
    (::cuslice::detail::real_nvml_function(static_cast<decltype(::name)*>(nullptr), \
                                           ::cuslice::nvml_slot(static_cast<size_t>(::cuslice::NvmlFunction::name))))

// CUSLICE_PHYSICAL_NVML(nvmlDeviceGetCount_v2)(&count): the real library's own function, whatever stands before it.
#define CUSLICE_PHYSICAL_NVML(name)                                                 \
    (::cuslice::detail::real_nvml_function(static_cast<decltype(::name)*>(nullptr), \
                                           ::cuslice::physical_nvml_slot(::cuslice::NvmlFunction::name)))
