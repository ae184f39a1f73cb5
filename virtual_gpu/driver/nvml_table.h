#pragma once
#include <cstddef>
#include <cstdint>

#include "virtual_gpu/driver/nvml.h"

namespace cuslice {

// NVML's functions as an index into the table below, as driver/table.h does for the driver.
enum class NvmlFunction : std::uint16_t {
#define CUSLICE_NVML_FUNCTION(name) name,
#include "virtual_gpu/driver/nvml_functions.def"
#undef CUSLICE_NVML_FUNCTION
};

inline constexpr const char* kNvmlFunctions[] = {
#define CUSLICE_NVML_FUNCTION(name) #name,
#include "virtual_gpu/driver/nvml_functions.def"
#undef CUSLICE_NVML_FUNCTION
};
inline constexpr std::size_t kNvmlFunctionCount = sizeof(kNvmlFunctions) / sizeof(kNvmlFunctions[0]);

// The real library's addresses; null where it lacks the function, and everywhere until it is loaded.
extern "C" void* cuslice_nvml_slots[kNvmlFunctionCount];

namespace detail {

template <typename... Arguments>
struct RealNvmlFunction {
    NvmlFunction function;

    nvml::Return operator()(Arguments... arguments) const {
        void* slot = cuslice_nvml_slots[static_cast<std::size_t>(function)];
        return slot ? reinterpret_cast<nvml::Return (*)(Arguments...)>(slot)(arguments...)
                    : nvml::ERROR_FUNCTION_NOT_FOUND;
    }
};

template <typename... Arguments>
constexpr RealNvmlFunction<Arguments...> real_nvml_function(nvml::Return (*)(Arguments...), NvmlFunction function) {
    return {function};
}

}  // namespace detail

}  // namespace cuslice

// CUSLICE_REAL_NVML(nvmlInit_v2)(): the real library's function, with the type that driver/nvml.h gives it.
#define CUSLICE_REAL_NVML(name)                                                                     \
    (::cuslice::detail::real_nvml_function(static_cast<::cuslice::nvml::functions::name*>(nullptr), \
                                           ::cuslice::NvmlFunction::name))
