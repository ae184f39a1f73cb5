#include "virtual_gpu/split/dispatch.h"

#include "config/split/identity.h"
#include "virtual_gpu/split/context_end.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/peer_access.h"
#include "virtual_gpu/split/stream_ordered.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

void* split_from_slots[kFunctionCount] = {};

namespace {

template <Function kFunction, std::size_t kPlace, typename... Arguments>
void* with_physical_of(CUresult(CUDAAPI*)(Arguments...)) {
    return reinterpret_cast<void*>(&with_physical<kFunction, kPlace, Arguments...>);
}

template <Function kFunction, typename... Arguments>
void* with_real_of(CUresult(CUDAAPI*)(Arguments...)) {
    return reinterpret_cast<void*>(&with_real<kFunction, Arguments...>);
}

// Whatever its arguments are.
template <Function kFunction>
CUresult CUDAAPI refused() {
    if (split().on_refusal) split().on_refusal(kFunctions[static_cast<std::size_t>(kFunction)].symbol);
    return CUDA_ERROR_NOT_SUPPORTED;
}

// Where the driver lacks a function, so do we.
void take_place(Function function, void* ours) {
    const auto i = static_cast<std::size_t>(function);
    if (!cuslice_driver_slots[i]) return;
    split_from_slots[i] = cuslice_driver_slots[i];
    __atomic_store_n(&cuslice_driver_slots[i], ours, __ATOMIC_RELEASE);
}

}  // namespace

void install_split() {
    split().set_installed();
#define CUSLICE_SPLIT_OWN(symbol) \
    take_place(Function::symbol, reinterpret_cast<void*>(static_cast<decltype(&::symbol)>(&split_driver::symbol)));
#define CUSLICE_SPLIT_DEVICE(symbol, place) \
    take_place(Function::symbol, with_physical_of<Function::symbol, place>(static_cast<decltype(&::symbol)>(nullptr)));
#define CUSLICE_SPLIT_CONTEXT(symbol) \
    take_place(Function::symbol, with_real_of<Function::symbol>(static_cast<decltype(&::symbol)>(nullptr)));
#define CUSLICE_SPLIT_REFUSED(symbol) take_place(Function::symbol, reinterpret_cast<void*>(&refused<Function::symbol>));
#include "virtual_gpu/split/functions.def"
#undef CUSLICE_SPLIT_OWN
#undef CUSLICE_SPLIT_DEVICE
#undef CUSLICE_SPLIT_CONTEXT
#undef CUSLICE_SPLIT_REFUSED
}

void open_split(std::span<const GpuIdentity> physical, const VirtualParts& parts) {
    for (const VirtualPart& part : parts.view()) {
        const GpuIdentity& gpu = physical[part.gpu];
        virtual_contexts().primary(split().count()).device = split().count();
        split().add({part.gpu, part, part.split ? identity_of_part(gpu, part.part) : gpu});
    }
    split().open();
}

// Those that are held over a call of the driver first.
void lock_split() {
    lifetimes_mutex().lock();
    virtual_pools_mutex().lock();
    virtual_contexts().mutex().lock();
    the_peer_access.mutex().lock();
    handle_registry().mutex().lock();
}

void leave_split_locks() {
    handle_registry().mutex().leave();
    the_peer_access.mutex().leave();
    virtual_contexts().mutex().leave();
    virtual_pools_mutex().leave();
    lifetimes_mutex().leave();
}

void unlock_split() {
    handle_registry().mutex().unlock();
    the_peer_access.mutex().unlock();
    virtual_contexts().mutex().unlock();
    virtual_pools_mutex().unlock();
    lifetimes_mutex().unlock();
}

}  // namespace cuslice
