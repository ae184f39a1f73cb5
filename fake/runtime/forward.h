// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of the runtime's that are the driver's under another name, with the same arguments in the same order.

#include "fake/runtime/state.h"

#include <bit>

#include "virtual_gpu/driver/parameters.h"

namespace cuslice::fake {

/// An argument as the driver's function takes it: an enumeration has the same numbers there, a structure the same
/// layout, and a pointer of the program's is the address.
template <class To, class From>
To as_driver(From argument) {
    using Pointee = std::remove_pointer_t<To>;
    if constexpr (std::is_convertible_v<From, To>) {
        return argument;
    } else if constexpr (std::is_enum_v<From>) {
        return static_cast<To>(argument);
    } else if constexpr (std::is_class_v<From>) {
        return std::bit_cast<To>(argument);
    } else if constexpr (std::is_same_v<From, const void*> && std::is_pointer_v<To>) {  // a handle
        return static_cast<To>(const_cast<void*>(argument));
    } else if constexpr (std::is_class_v<Pointee> || std::is_union_v<Pointee>) {
        return same_layout<Pointee>(argument);
    } else {
        return reinterpret_cast<To>(argument);
    }
}

template <FunctionName Name, class... Parameters, int Version, cuuint64_t Flags, class... Arguments>
CUresult forward(DriverFunction<Name, CUresult (*)(Parameters...), Version, Flags> function, Arguments... arguments) {
    return function(as_driver<Parameters>(arguments)...);
}

}  // namespace cuslice::fake

/// CUSLICE_FORWARD(cudaGraphClone, cuGraphClone, 10000, clone, original) defines cudaGraphClone, with the parameters
/// that it is declared with: the driver's cuGraphClone in the form of CUDA 10.0, in the current context.
#define CUSLICE_FORWARD(name, function, version, ...) \
    CUSLICE_FORWARD_BY(PlainFunction, name, #function, PFN_##function##_v##version, version, __VA_ARGS__)

/// The same for a function that works on a stream: the legacy or the per-thread form, as the translation unit is.
#define CUSLICE_FORWARD_STREAM(name, function, version, ...) \
    CUSLICE_FORWARD_BY(StreamFunction, name, #function, PFN_##function##_v##version, version, __VA_ARGS__)

#define CUSLICE_FORWARD_BY(kind, name, function, type, version, ...)               \
    cudaError_t name(CUSLICE_PARAMETERS(name, __VA_ARGS__)) {                      \
        return ::cuslice::fake::in_context([&] {                                   \
            constexpr ::cuslice::fake::kind<function, type, version> in_driver{};  \
            return ::cuslice::fake::forward(in_driver __VA_OPT__(, ) __VA_ARGS__); \
        });                                                                        \
    }

/// The same for a function whose parameter `device` is an ordinal, and the driver's handle there. It wants no context.
#define CUSLICE_FORWARD_DEVICE(name, function, version, ...)                     \
    cudaError_t name(CUSLICE_PARAMETERS(name, __VA_ARGS__)) {                    \
        return ::cuslice::fake::on_device(device, [&](CUdevice handle) {         \
            device = handle;                                                     \
            return ::cuslice::fake::forward(CU(function, version), __VA_ARGS__); \
        });                                                                      \
    }

/// Defines a function of the runtime's that calls `function` with its arguments.
#define CUSLICE_CALLING(name, function, ...) \
    cudaError_t name(CUSLICE_PARAMETERS(name, __VA_ARGS__)) { return function(__VA_ARGS__); }
