// Memory between processes, the older way: a handle of 64 bytes, which any channel can carry.

#include <cstring>

#include "virtual_gpu/fake/driver/gate.h"
#include "virtual_gpu/fake/driver/sharing.h"

using namespace cuslice::fake;

namespace {

static_assert(sizeof(SharingTicket) == sizeof(CUipcMemHandle));

CUresult open(CUdeviceptr* out, const CUipcMemHandle& handle, unsigned flags) {
    Context* context = nullptr;
    if (out == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    SharingTicket ticket{};
    std::memcpy(&ticket, &handle, sizeof ticket);
    Address address = 0;
    const CUresult result = open_shared(ticket, ipc_magic, context->number, address);
    if (result == CUDA_SUCCESS) *out = address;
    return result;
}

}  // namespace

CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr address) {
    CUSLICE_ENTER(cuIpcGetMemHandle)
    Context* context = nullptr;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    const Found found = find_block(address);
    // Documented for the base of an allocation of cuMemAlloc, and for nothing else.
    if (!found || found.block.base != address || found.block.record->kind != BlockKind::Device)
        return CUDA_ERROR_INVALID_VALUE;
    SharingTicket ticket{};
    if (const CUresult bad = share_block(found, ipc_magic, ticket); bad != CUDA_SUCCESS) return bad;
    std::memcpy(out, &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
    CUSLICE_ENTER(cuIpcOpenMemHandle)
    return open(out, handle, flags);
}

CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
    CUSLICE_ENTER(cuIpcOpenMemHandle_v2)
    return open(out, handle, flags);
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr address) {
    CUSLICE_ENTER(cuIpcCloseMemHandle)
    Context* context = nullptr;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    return close_shared(address, false);
}
