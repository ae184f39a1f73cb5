#include "virtual_gpu/split/ending.h"

#include "virtual_gpu/split/made.h"
#include "virtual_gpu/split/physical.h"

namespace cuslice {

namespace {

constinit thread_local bool left_memory = false;
constinit Mutex lifetimes;

template <typename Handle, typename Destroy>
void destroy_all(const VirtualContext& context, Made kind, Destroy destroy) {
    while (void* handle = made_things().take_of(context.number, kind)) destroy(static_cast<Handle>(handle));
}

}  // namespace

Mutex& lifetimes_mutex() { return lifetimes; }

void end_what_was_made(const VirtualContext& context) {
    CUcontext popped = nullptr;
    if (CUSLICE_PHYSICAL(cuCtxPushCurrent_v2)(context.real) != CUDA_SUCCESS) return;
    CUSLICE_PHYSICAL(cuCtxSynchronize)();
    destroy_all<CUstream>(context, Made::stream, [](CUstream it) { CUSLICE_PHYSICAL(cuStreamDestroy_v2)(it); });
    destroy_all<CUmodule>(context, Made::module, [](CUmodule it) { CUSLICE_PHYSICAL(cuModuleUnload)(it); });
    destroy_all<CUarray>(context, Made::array, [](CUarray it) { CUSLICE_PHYSICAL(cuArrayDestroy)(it); });
    destroy_all<CUmipmappedArray>(context, Made::mipmap, [](CUmipmappedArray it) {
        CUSLICE_PHYSICAL(cuMipmappedArrayDestroy)(it);
    });
    CUSLICE_PHYSICAL(cuCtxPopCurrent_v2)(&popped);
}

RealContextOf::RealContextOf(CUcontext handle) {
    const VirtualContext* context = virtual_contexts().find(handle);
    pushed_ = context && CUSLICE_PHYSICAL(cuCtxPushCurrent_v2)(context->real) == CUDA_SUCCESS;
}

RealContextOf::~RealContextOf() {
    CUcontext popped = nullptr;
    if (pushed_) CUSLICE_PHYSICAL(cuCtxPopCurrent_v2)(&popped);
}

bool take_left_memory() {
    const bool left = left_memory;
    left_memory = false;
    return left;
}
void leave_memory(bool left) { left_memory = left; }

}  // namespace cuslice
