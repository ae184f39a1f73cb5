// SPDX-License-Identifier: Apache-2.0
// Memory and events between processes, the older way: a handle of 64 bytes, which any channel can carry.

#include <cstring>

#include "fake/driver/addresses.h"
#include "fake/driver/api_prologue.h"
#include "fake/driver/event.h"
#include "fake/driver/sharing.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

static_assert(sizeof(SharingTicket) == sizeof(CUipcMemHandle));

CUresult open(CUdeviceptr* out, const CUipcMemHandle& handle, unsigned flags) {
    if (out == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    SharingTicket ticket{};
    std::memcpy(&ticket, &handle, sizeof ticket);
    return open_shared(ticket, kIpcMagic, context->number, *out);
}

}  // namespace

CUSLICE_ENTRY(cuIpcGetMemHandle, out, address) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    if (context->gpu->spec.is_instance)
        return CUDA_ERROR_NOT_SUPPORTED;
    const Found found = find_block(address);
    // Documented for the base of an allocation of cuMemAlloc, and for nothing else.
    if (!found || found.base != address || found.record.kind != BlockKind::Device)
        return CUDA_ERROR_INVALID_VALUE;
    SharingTicket ticket{};
    CUSLICE_TRY(share_block(found, kIpcMagic, 0, ticket));
    std::memcpy(out, &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY_PAIR(cuIpcOpenMemHandle, open, out, handle, flags)

CUSLICE_ENTRY(cuIpcCloseMemHandle, address) {
    CUSLICE_FIND_CURRENT(context);
    return close_shared(address, false);
}

CUSLICE_ENTRY(cuIpcGetEventHandle, out, handle) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_IN(event, events, handle);
    if (driver().gpus.front()->spec.is_instance)
        return CUDA_ERROR_NOT_SUPPORTED;
    return event->shared != nullptr && event->shared->handle(*out) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUSLICE_ENTRY(cuIpcOpenEventHandle, out, ticket) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    std::shared_ptr<SharedEvent> shared;
    CUSLICE_TRY(SharedEvent::open(ticket, shared));
    constexpr unsigned kFlags = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    const Event made{.context = context->handle, .gpu = context->gpu, .flags = kFlags, .shared = shared};
    *out = events.create(made).first;
    return CUDA_SUCCESS;
}
