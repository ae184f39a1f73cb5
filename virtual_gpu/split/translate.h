// SPDX-License-Identifier: Apache-2.0
#pragma once
// From what the program means to what the driver knows.
#include <tuple>
#include <type_traits>

#include "virtual_gpu/split/physical.h"
#include "virtual_gpu/split/split.h"
#include "virtual_gpu/split/virtual_context.h"

namespace cuslice {

// Each leaves what is not ours to translate. Before the GPUs are open everything is the driver's to answer, and later
// what it thinks of a GPU that is not there: each function says so in its own way, or looks at something else first.
inline void to_physical(CUdevice& device) {
    if (!split().is_open())
        return;
    const Split::Device* known = split().device(device);
    device = known ? known->physical : CU_DEVICE_INVALID;
}

// False if there is no such context.
inline bool to_real(CUcontext& context) {
    if (!context)
        return true;
    context = virtual_contexts().resolve(context).real;
    return context;
}

inline void to_physical(CUmemLocation& location) {
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        to_physical(location.id);
}

// A function whose argument at kPlace is a GPU's ordinal.
template <Function kFunction, size_t kPlace, typename... Arguments>
CUresult CUDAAPI with_physical(Arguments... arguments) {
    std::tuple<Arguments...> all(arguments...);
    static_assert(std::is_same_v<std::tuple_element_t<kPlace, std::tuple<Arguments...>>, CUdevice>);
    to_physical(std::get<kPlace>(all));
    return std::apply(detail::PhysicalFunction<kFunction, Arguments...>{}, all);
}

// A function some of whose arguments are contexts.
template <Function kFunction, typename... Arguments>
CUresult CUDAAPI with_real(Arguments... arguments) {
    bool known = true;
    const auto translate = [&](auto& argument) {
        if constexpr (std::is_same_v<std::remove_reference_t<decltype(argument)>, CUcontext>)
            known = to_real(argument) && known;
    };
    (translate(arguments), ...);
    return known ? detail::PhysicalFunction<kFunction, Arguments...>{}(arguments...) : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace cuslice
