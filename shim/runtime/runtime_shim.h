// SPDX-License-Identifier: Apache-2.0
#pragma once
// The runtime shim: NVIDIA's runtime sees the physical GPUs, and the program the virtual ones. So what stands before
// the runtime exchanges the one for the other, and the runtime does all else.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "shim/runtime/split_view.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice::runtime {

enum class Id : uint16_t {
#define CUSLICE_RUNTIME(symbol, in_11, in_12, in_13) symbol,
#define CUSLICE_RUNTIME_NEEDED(symbol) symbol,
#include "shim/runtime/functions.def"
#undef CUSLICE_RUNTIME
#undef CUSLICE_RUNTIME_NEEDED
    count
};

// The split, once the GPUs are known; null where none is split, or the driver doesn't start: all is the runtime's then.
const SplitView* view();

// The address of a function in the runtime that is loaded, of major version 11, 12 or 13; null if it has none. A caller
// that names no version comes by 12 or, by dlsym, 13: if that one isn't loaded, it gets the newest that is.
void* runtime_function(int version, Id id);
// The version that a caller of this one's functions really gets.
int loaded_version(int version);

namespace detail {

template <typename... Arguments>
struct Next {
    void* address;
    cudaError_t operator()(Arguments... arguments) const {
        const auto call = reinterpret_cast<cudaError_t (*)(Arguments...)>(address);
        return call ? call(arguments...) : cudaErrorNotSupported;
    }
};

template <typename... Arguments>
Next<Arguments...> next(cudaError_t (*)(Arguments...), int version, Id id) {
    return {runtime_function(version, id)};
}

// An older form has other arguments, so it is none to fall back to.
template <typename... Arguments>
Next<Arguments...> next_form(cudaError_t (*)(Arguments...), int version, Id id) {
    return {loaded_version(version) == version ? runtime_function(version, id) : nullptr};
}

}  // namespace detail

// The runtime's own function of the same name and type: in a function template of `int kVersion`, and in one of the
// forms of a function. NEEDED: another one, with the type that the header gives `type`.
#define CUSLICE_NEXT(symbol) (detail::next(&symbol<kVersion>, kVersion, Id::symbol))
#define CUSLICE_NEEDED(symbol, type) (detail::next(static_cast<decltype(&::type)>(nullptr), kVersion, Id::symbol))
#define CUSLICE_NEXT_FORM(symbol, version) (detail::next_form(&symbol##_##version, version, Id::symbol))

// A GPU as the runtime counts. One that isn't there becomes one that isn't there either, and isn't the host
// (cudaCpuDeviceId, -1), so that the runtime refuses it in its own words and remembers the error.
inline int physical(int ordinal) {
    const SplitView* split = view();
    return split ? split->physical_of(ordinal) : ordinal;
}
inline int physical_or_host(int ordinal) { return ordinal == cudaCpuDeviceId ? ordinal : physical(ordinal); }

inline cudaMemLocation physical(cudaMemLocation location) {
    if (location.type == cudaMemLocationTypeDevice)
        location.id = physical(location.id);
    return location;
}

// Asked before a newer form of a function is: a driver without it says so in a line, and the program didn't call it.
inline bool driver_is_before(int version) {
    int known = 0;
    return cuDriverGetVersion(&known) == CUDA_SUCCESS && known < version;
}

inline cudaError_t as_runtime(CUresult result) { return static_cast<cudaError_t>(result); }
inline CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// A copy of the program's array, with places as the runtime counts.
template <typename Item, typename Call>
cudaError_t with_places(const Item* items, size_t count, void (*translate)(Item&), Call call) {
    constexpr size_t kAtOnce = 64;
    if (!items || !count || !view())
        return call(const_cast<Item*>(items));
    Item few[kAtOnce];
    Item* copy = count <= kAtOnce ? few : static_cast<Item*>(__builtin_malloc(count * sizeof(Item)));
    if (!copy)
        return cudaErrorMemoryAllocation;
    for (size_t i = 0; i < count; i++)
        translate(copy[i] = items[i]);
    const cudaError_t result = call(copy);
    if (copy != few)
        __builtin_free(copy);
    return result;
}

}  // namespace cuslice::runtime
