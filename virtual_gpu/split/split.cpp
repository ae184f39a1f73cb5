#include "virtual_gpu/split/split.h"

#include "virtual_gpu/split/ending.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/made.h"
#include "virtual_gpu/split/peers.h"
#include "virtual_gpu/split/pools.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

constinit Split the_split;
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
    if (the_split.on_refusal) the_split.on_refusal(kFunctions[static_cast<std::size_t>(kFunction)].symbol);
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

void Split::install() {
    installed_ = true;
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

void Split::open(std::span<const GpuIdentity> physical, const VirtualParts& parts) {
    for (const VirtualPart& part : parts.view()) {
        const GpuIdentity& gpu = physical[part.gpu];
        virtual_contexts().primary(count_).device = count_;
        devices_[count_++] = {part.gpu, part, part.split ? identity_of_part(gpu, part.part) : gpu};
    }
    open_ = true;
}

// Those that are held over a call of the driver first.
void Split::lock_all() {
    lifetimes_mutex().lock();
    virtual_pools_mutex().lock();
    virtual_contexts().mutex().lock();
    the_peer_access.mutex().lock();
    made_things().mutex().lock();
}

void Split::leave_locks() {
    made_things().mutex().leave();
    the_peer_access.mutex().leave();
    virtual_contexts().mutex().leave();
    virtual_pools_mutex().leave();
    lifetimes_mutex().leave();
}

void Split::unlock_all() {
    made_things().mutex().unlock();
    the_peer_access.mutex().unlock();
    virtual_contexts().mutex().unlock();
    virtual_pools_mutex().unlock();
    lifetimes_mutex().unlock();
}

int Split::first_of(CUdevice physical) const {
    for (int i = 0; i < count_; i++)
        if (devices_[i].physical == physical) return i;
    return -1;
}

}  // namespace cuslice
