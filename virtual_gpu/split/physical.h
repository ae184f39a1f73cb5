// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/driver/table.h"

namespace cuslice {

// Where a GPU is split, functions of this folder take the place of the driver's in the table that everything else calls
// through (driver/table.h), and the driver's own addresses are here. Null where a function is the driver's still.
extern void* split_from_slots[kFunctionCount];

// The driver's own function, whatever stands before it.
inline void* physical_slot(Function function) {
    void* own = split_from_slots[static_cast<size_t>(function)];
    return own ? own : driver_slot(function);
}

namespace detail {

template <Function kFunction, typename... Arguments>
struct PhysicalFunction {
    CUresult operator()(Arguments... arguments) const {
        const auto call = reinterpret_cast<CUresult(CUDAAPI*)(Arguments...)>(physical_slot(kFunction));
        return call ? call(arguments...) : unavailable();
    }
};

template <Function kFunction, typename... Arguments>
constexpr PhysicalFunction<kFunction, Arguments...> physical_function(CUresult(CUDAAPI*)(Arguments...)) {
    return {};
}

}  // namespace detail

}  // namespace cuslice

// CUSLICE_PHYSICAL(cuDeviceGetCount)(&count): as CUSLICE_REAL, of the physical GPUs.
#define CUSLICE_PHYSICAL(symbol) \
    (::cuslice::detail::physical_function<::cuslice::Function::symbol>(static_cast<decltype(&::symbol)>(nullptr)))
