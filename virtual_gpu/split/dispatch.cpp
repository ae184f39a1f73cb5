// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/split/dispatch.h"

#include "config/split/identity.h"
#include "virtual_gpu/split/context_lifetime.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/peer_access.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

void* split_from_slots[kFunctionCount] = {};

namespace {

template <Function kFunction, size_t kPlace, typename... Arguments>
void* with_physical_of(CUresult(CUDAAPI*)(Arguments...)) {
    return reinterpret_cast<void*>(&with_physical<kFunction, kPlace, Arguments...>);
}

template <Function kFunction, typename... Arguments>
void* with_real_of(CUresult(CUDAAPI*)(Arguments...)) {
    return reinterpret_cast<void*>(&with_real<kFunction, Arguments...>);
}

// Refuses a call of the function, whatever its arguments are.
template <Function kFunction>
CUresult CUDAAPI refused() {
    split().on_refusal(kFunctions[static_cast<size_t>(kFunction)].symbol);
    return CUDA_ERROR_NOT_SUPPORTED;
}

// Where the driver lacks a function, so do we.
void take_place(Function function, void* ours) {
    const auto i = static_cast<size_t>(function);
    void* const real = driver_slot(function);
    if (!real)
        return;
    split_from_slots[i] = real;
    __atomic_store_n(&cuslice_driver_slots[i], ours, __ATOMIC_RELEASE);
}

}  // namespace

void install_split() {
    split().set_installed();
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) CUSLICE_SPLIT_##split(symbol)
#define CUSLICE_SPLIT_none(symbol)
#define CUSLICE_SPLIT_own(symbol) \
    take_place(Function::symbol, reinterpret_cast<void*>(static_cast<decltype(&::symbol)>(&split_driver::symbol)));
#define CUSLICE_SPLIT_device(symbol, place) \
    take_place(Function::symbol, with_physical_of<Function::symbol, place>(static_cast<decltype(&::symbol)>(nullptr)));
#define CUSLICE_SPLIT_device_0(symbol) CUSLICE_SPLIT_device(symbol, 0)
#define CUSLICE_SPLIT_device_1(symbol) CUSLICE_SPLIT_device(symbol, 1)
#define CUSLICE_SPLIT_device_2(symbol) CUSLICE_SPLIT_device(symbol, 2)
#define CUSLICE_SPLIT_device_3(symbol) CUSLICE_SPLIT_device(symbol, 3)
#define CUSLICE_SPLIT_context(symbol) \
    take_place(Function::symbol, with_real_of<Function::symbol>(static_cast<decltype(&::symbol)>(nullptr)));
#define CUSLICE_SPLIT_refused(symbol) take_place(Function::symbol, reinterpret_cast<void*>(&refused<Function::symbol>));
#include "virtual_gpu/driver/functions.def"
}

void open_split(std::span<const GpuIdentity> physical, const VirtualParts& parts) {
    int ordinal = 0;
    for (const VirtualPart& part : parts.view()) {
        virtual_contexts().primary(ordinal).device = ordinal;
        split().add({part.gpu, part, identity_of_virtual(part, physical)});
        ordinal++;
    }
    split().open();
}

}  // namespace cuslice
