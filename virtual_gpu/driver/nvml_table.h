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
enum class NvmlFunction : std::uint16_t {
#define CUSLICE_NVML_FUNCTION(name) name,
#include "virtual_gpu/driver/nvml_functions.def"
#undef CUSLICE_NVML_FUNCTION
};

inline constexpr std::size_t kNvmlFunctionCount = 0
#define CUSLICE_NVML_FUNCTION(name) +1
#include "virtual_gpu/driver/nvml_functions.def"
#undef CUSLICE_NVML_FUNCTION
    ;

inline constexpr auto kNvmlFunctions = names<kNvmlFunctionCount>(
#define CUSLICE_NVML_FUNCTION(name) #name "\0"
#include "virtual_gpu/driver/nvml_functions.def"
#undef CUSLICE_NVML_FUNCTION
);

// The real library's addresses; null where it lacks the function, and everywhere until it is loaded.
extern "C" void* cuslice_physical_nvml_slots[kNvmlFunctionCount];
// What a call of NVML's goes to: the same, or where GPUs are split what stands before it (virtual_gpu/split/nvml.h).
extern "C" void* cuslice_nvml_slots[kNvmlFunctionCount];

inline void* physical_nvml_slot(NvmlFunction function) {
    return cuslice_physical_nvml_slots[static_cast<std::size_t>(function)];
}

namespace detail {

template <typename... Arguments>
struct RealNvmlFunction {
    void* slot;

    nvml::Return operator()(Arguments... arguments) const {
        if (!slot) return nvml::ERROR_FUNCTION_NOT_FOUND;
        const InsideNvml inside;
        return reinterpret_cast<nvml::Return (*)(Arguments...)>(slot)(arguments...);
    }
};

template <typename... Arguments>
RealNvmlFunction<Arguments...> real_nvml_function(nvml::Return (*)(Arguments...), void* slot) {
    return {slot};
}

}  // namespace detail

}  // namespace cuslice

// CUSLICE_REAL_NVML(nvmlInit_v2)(): what a call of this function goes to, with the type that driver/nvml.h gives it.
#define CUSLICE_REAL_NVML(name)                                  \
    (::cuslice::detail::real_nvml_function(                      \
        static_cast<::cuslice::nvml::functions::name*>(nullptr), \
        ::cuslice_nvml_slots[static_cast<std::size_t>(::cuslice::NvmlFunction::name)]))

// CUSLICE_PHYSICAL_NVML(nvmlDeviceGetCount_v2)(&count): the real library's own function, whatever stands before it.
#define CUSLICE_PHYSICAL_NVML(name)                                                                 \
    (::cuslice::detail::real_nvml_function(static_cast<::cuslice::nvml::functions::name*>(nullptr), \
                                           ::cuslice::physical_nvml_slot(::cuslice::NvmlFunction::name)))
