// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/split/virtual_context.h"

#include "virtual_gpu/split/peer_access.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

constinit VirtualContexts the_virtual_contexts;
constinit VirtualContext VirtualContexts::contexts_[kMax];

bool VirtualContext::primary() const { return this < VirtualContexts::contexts_ + VirtualContexts::kPrimary; }

CUcontext VirtualContext::handle() const {
    const bool is_real = primary() && split().first_of(split().device(device)->physical) == device;
    return is_real ? CUcontext{real} : reinterpret_cast<CUcontext>(const_cast<VirtualContext*>(this));
}

VirtualContext* VirtualContexts::find(CUcontext handle) {
    const auto address = reinterpret_cast<uintptr_t>(handle), first = reinterpret_cast<uintptr_t>(contexts_);
    if (address - first < sizeof(contexts_))
        return (address - first) % sizeof(VirtualContext) == 0 ? reinterpret_cast<VirtualContext*>(handle) : nullptr;
    for (int i = 0; handle && i < split().count(); i++)
        if (contexts_[i].real == handle && contexts_[i].handle() == handle)
            return &contexts_[i];
    return nullptr;
}

VirtualContext* VirtualContexts::numbered(uint64_t number) {
    LockGuard lock(mutex_);
    for (VirtualContext& context : contexts_)
        if (context.number == number && context.lives.load(std::memory_order_relaxed))
            return &context;
    return nullptr;
}

VirtualContexts::Resolved VirtualContexts::resolve(CUcontext handle) {
    const auto address = reinterpret_cast<uintptr_t>(handle), first = reinterpret_cast<uintptr_t>(contexts_);
    const bool ours = address - first < sizeof(contexts_);
    VirtualContext* context = find(handle);
    if (context && context->lives.load(std::memory_order_acquire))
        return {context, context->real};
    if (ours)
        return {context, nullptr};
    // The real one that the first part stands for, which nobody has asked for as that part's: a runtime's.
    return {nullptr, handle};
}

// With the lock held.
void VirtualContexts::start(VirtualContext& context, CUcontext real) {
    context.real = real;
    context.ended = VirtualContext::Ended::never;
    context.number = ++numbers_;
    context.lives.store(true, std::memory_order_release);
}

VirtualContext* VirtualContexts::create(int device, CUcontext real, unsigned flags) {
    LockGuard lock(mutex_);
    for (size_t tried = kPrimary; tried < kMax; tried++) {
        VirtualContext& context = contexts_[next_];
        next_ = next_ + 1 < kMax ? next_ + 1 : kPrimary;
        if (context.lives.load(std::memory_order_relaxed))
            continue;
        context.device = device;
        context.flags = flags;
        context.version = 0;
        context.uses = 1;
        start(context, real);
        return &context;
    }
    return nullptr;
}

void VirtualContexts::begin(VirtualContext& primary, CUcontext real) {
    LockGuard lock(mutex_);
    primary.flags = unsigned{primary.preset};
    start(primary, real);
}

void VirtualContexts::use(VirtualContext& context) {
    LockGuard lock(mutex_);
    context.uses += 1;
}

void VirtualContexts::use_at_least_once(VirtualContext& context) {
    LockGuard lock(mutex_);
    if (!context.uses)
        context.uses = 1;
}

bool VirtualContexts::give_up(VirtualContext& context) {
    LockGuard lock(mutex_);
    if (context.uses <= 1)
        return false;
    context.uses = context.uses - 1;
    return true;
}

void VirtualContexts::end(VirtualContext& context) {
    interrupt(context);
    LockGuard lock(mutex_);
    context.uses = 0;
}

void VirtualContexts::interrupt(VirtualContext& primary) {
    the_peer_access.ended(primary.number);
    LockGuard lock(mutex_);
    primary.ended = VirtualContext::Ended::by_program;
    primary.lives.store(false, std::memory_order_release);
}

bool VirtualContexts::has_company(const VirtualContext& context) {
    LockGuard lock(mutex_);
    for (const VirtualContext& other : contexts_)
        if (&other != &context && other.lives.load(std::memory_order_relaxed) &&
            split().siblings(other.device, context.device))
            return true;
    return false;
}

}  // namespace cuslice
