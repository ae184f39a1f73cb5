// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/split/current_context.h"

#include <array>

#include "policy/base/page_vector.h"
#include "virtual_gpu/split/context_lifetime.h"
#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/physical.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

namespace {

// Contexts that this thread has pushed, without the one on top. Few threads push deep: contexts beyond a handful are
// in memory that goes when the stack is flat again.
class Below {
  public:
    bool push(VirtualContext* context) {
        if (depth_ < first_.size())
            first_[depth_] = context;
        else if (!rest_.push_back(context))
            return false;
        depth_++;
        return true;
    }
    VirtualContext* pop() {
        if (depth_ == 0)
            return nullptr;
        if (--depth_ < first_.size())
            return first_[depth_];
        VirtualContext* context = rest_[depth_ - first_.size()];
        rest_.remove_at(depth_ - first_.size());
        if (rest_.size() == 0)
            rest_.release();
        return context;
    }

  private:
    std::array<VirtualContext*, 6> first_{};
    size_t depth_ = 0;
    PageVector<VirtualContext*> rest_;
};

constinit thread_local VirtualContext* on_top = nullptr;
constinit thread_local Below below;

CUcontext real_current() {
    CUcontext now = nullptr;
    return CUSLICE_PHYSICAL(cuCtxGetCurrent)(&now) == CUDA_SUCCESS ? now : nullptr;
}

}  // namespace

// Others may have made another real context current meanwhile, beneath us; then that one counts.
VirtualContexts::Resolved CurrentVirtual::peek() {
    const CUcontext now = real_current();
    if (!now)
        return {};
    if (on_top && on_top->real == now)
        return {on_top, now};
    return virtual_contexts().resolve(now);
}

VirtualContexts::Resolved CurrentVirtual::get() {
    const VirtualContexts::Resolved now = peek();
    const bool lives = now.context && now.context->lives.load(std::memory_order_acquire);
    VirtualContext* const begun = lives || !now.real ? nullptr : begin_by_use(now.context, now.real);
    return begun ? VirtualContexts::Resolved{begun, now.real} : now;
}

CUcontext CurrentVirtual::handle() {
    const VirtualContexts::Resolved now = get();
    return now.context ? now.context->handle() : now.real;
}

int CurrentVirtual::device() {
    const VirtualContexts::Resolved now = get();
    if (!now.real)
        return -1;
    if (now.context)
        return now.context->device;
    if (const HandleOwner made = handle_registry().find(now.real, HandleKind::green_context); made.known)
        return made.device;
    CUdevice physical = -1;
    return CUSLICE_PHYSICAL(cuCtxGetDevice)(&physical) == CUDA_SUCCESS ? split().first_of(physical) : -1;
}

CUresult CurrentVirtual::set(VirtualContexts::Resolved resolved) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxSetCurrent)(resolved.real);
    // None is what lies beneath the one on top.
    if (result == CUDA_SUCCESS)
        on_top = resolved.real ? resolved.context : below.pop();
    return result;
}

CUresult CurrentVirtual::push(VirtualContexts::Resolved resolved) {
    if (!below.push(on_top))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxPushCurrent_v2)(resolved.real);
    if (result == CUDA_SUCCESS)
        on_top = resolved.context;
    else
        below.pop();
    return result;
}

CUresult CurrentVirtual::pop(CUcontext* popped) {
    const CUcontext was = handle();
    CUcontext real = nullptr;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxPopCurrent_v2)(&real);
    if (result != CUDA_SUCCESS)
        return result;
    on_top = below.pop();
    if (popped)
        *popped = was;
    return result;
}

CUcontext to_virtual(CUcontext real) {
    if (!real)
        return nullptr;
    const VirtualContexts::Resolved now = CurrentVirtual::get();
    if (now.context && now.context->real == real)
        return now.context->handle();
    const VirtualContext* context = virtual_contexts().find(real);
    return context ? context->handle() : real;
}

int to_virtual(CUdevice physical) {
    const int here = CurrentVirtual::device();
    const Split::Device* device = split().device(here);
    return device && device->physical == physical ? here : split().first_of(physical);
}

}  // namespace cuslice
