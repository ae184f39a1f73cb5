// SPDX-License-Identifier: Apache-2.0
// Green contexts: parts of a GPU's multiprocessors, real ones on the physical GPU. Each uses the virtual GPU's primary
// context, as it would a GPU's.
#include "policy/base/out_parameter.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

// Registers it before the retain: otherwise the physical primary context, which it keeps alive, would be taken for one
// that the runtime uses.
bool hold_primary(CUgreenCtx green, CUdevice ordinal) {
    CUcontext primary = nullptr;
    if (!handle_registry().add(green, HandleKind::green, ordinal, 0))
        return false;
    if (split_driver::cuDevicePrimaryCtxRetain(&primary, ordinal) == CUDA_SUCCESS)
        return true;
    handle_registry().remove(green, HandleKind::green);
    return false;
}

}  // namespace

namespace split_driver {

CUresult cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc resources, CUdevice ordinal, unsigned flags) {
    CUdevice physical = ordinal;
    to_physical(physical);
    OutParameter<CUgreenCtx> made(green);
    CUresult result = CUSLICE_PHYSICAL(cuGreenCtxCreate)(made.place(), resources, physical, flags);
    if (result != CUDA_SUCCESS)
        return result;
    if (split().is_open() && !hold_primary(*made, ordinal)) {
        CUSLICE_PHYSICAL(cuGreenCtxDestroy)(*made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made.keep();
    return result;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green) {
    CUcontext context = nullptr;
    CUSLICE_PHYSICAL(cuCtxFromGreenCtx)(&context, green);
    const CUresult result = CUSLICE_PHYSICAL(cuGreenCtxDestroy)(green);
    if (result != CUDA_SUCCESS)
        return result;
    const HandleOwner owner = handle_registry().find(green, HandleKind::green);
    handle_registry().remove(green, HandleKind::green);
    handle_registry().remove(context, HandleKind::green_context);
    if (owner.known)
        split_driver::cuDevicePrimaryCtxRelease_v2(owner.device);
    return result;
}

CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxFromGreenCtx)(context, green);
    const HandleOwner owner = handle_registry().find(green, HandleKind::green);
    if (result == CUDA_SUCCESS && owner.known && !virtual_contexts().find(*context))
        handle_registry().add(*context, HandleKind::green_context, owner.device, 0);
    return result;
}

CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx green, unsigned flags, int priority) {
    const CUresult result = CUSLICE_PHYSICAL(cuGreenCtxStreamCreate)(stream, green, flags, priority);
    const HandleOwner owner = handle_registry().find(green, HandleKind::green);
    if (result == CUDA_SUCCESS && owner.known)
        handle_registry().add(*stream, HandleKind::stream, owner.device, 0);
    return result;
}

}  // namespace split_driver

}  // namespace cuslice
