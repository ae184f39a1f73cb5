#pragma once
#include "virtual_gpu/driver/nvml_table.h"

namespace cuslice {

// Where a GPU is split, what is called through NVML's table (driver/nvml_table.h) takes virtual GPUs' handles, and the
// real library's own addresses are here. Null where nothing stands before a function.
extern "C" void* cuslice_physical_nvml_slots[kNvmlFunctionCount];

// The real library's own function, whatever stands before it.
inline void* physical_nvml_slot(NvmlFunction function) {
    const auto i = static_cast<std::size_t>(function);
    return cuslice_physical_nvml_slots[i] ? cuslice_physical_nvml_slots[i] : cuslice_nvml_slots[i];
}

namespace detail {

template <typename... Arguments>
struct PhysicalNvmlFunction {
    NvmlFunction function;

    nvml::Return operator()(Arguments... arguments) const {
        void* slot = physical_nvml_slot(function);
        return slot ? reinterpret_cast<nvml::Return (*)(Arguments...)>(slot)(arguments...)
                    : nvml::ERROR_FUNCTION_NOT_FOUND;
    }
};

template <typename... Arguments>
constexpr PhysicalNvmlFunction<Arguments...> physical_nvml_function(nvml::Return (*)(Arguments...),
                                                                    NvmlFunction function) {
    return {function};
}

}  // namespace detail

}  // namespace cuslice

// CUSLICE_PHYSICAL_NVML(nvmlDeviceGetCount_v2)(&count): as CUSLICE_REAL_NVML, of the physical GPUs.
#define CUSLICE_PHYSICAL_NVML(name)                                                                     \
    (::cuslice::detail::physical_nvml_function(static_cast<::cuslice::nvml::functions::name*>(nullptr), \
                                               ::cuslice::NvmlFunction::name))
