// SPDX-License-Identifier: Apache-2.0
#pragma once
// Streams, modules and arrays: the driver makes them in the real context, and they end with the virtual one.
#include "policy/base/out_parameter.h"
#include "virtual_gpu/split/current_context.h"
#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

// Notes that a thing is the current context's. False if the kernel gives no memory for it.
inline bool note_as_current(const void* handle, HandleKind kind) {
    const VirtualContexts::Resolved now = CurrentVirtual::get();
    return handle_registry().add(handle, kind, CurrentVirtual::device(),
                                 now.context ? uint64_t{now.context->number} : 0);
}

// A thing that the driver is to make in the current context: `call` is given where the driver puts it. Where there is
// no memory to note whose it is, it is destroyed again.
template <typename Handle, typename Call, typename Destroy>
CUresult make_registered(HandleKind kind, Handle* handle, Call call, Destroy destroy) {
    OutParameter<Handle> made(handle);
    const CUresult result = call(made.place());
    if (result != CUDA_SUCCESS)
        return result;
    if (!note_as_current(*made, kind)) {
        destroy(*made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made.keep();
    return result;
}

// Its number may be another's as soon as the driver has it back.
template <typename Handle, typename Call>
CUresult destroy_registered(HandleKind kind, Handle handle, Call call) {
    const HandleOwner owner = handle_registry().find(handle, kind);
    handle_registry().remove(handle, kind);
    const CUresult result = call();
    if (result != CUDA_SUCCESS && owner.known)
        handle_registry().add(handle, kind, owner.device, owner.context);
    return result;
}

}  // namespace cuslice
