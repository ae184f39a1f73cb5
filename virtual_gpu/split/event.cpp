// SPDX-License-Identifier: Apache-2.0
// Events: the driver makes them in the real context, and takes those of all parts of a GPU for each other's. A program
// is told so of times between them alone, as of events of two GPUs.
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/register_handle.h"

namespace cuslice {

namespace {

template <typename Real>
CUresult destroy_event(Real real, CUevent event) {
    return destroy_registered(HandleKind::event, event, [&] { return real(event); });
}

template <typename Real>
CUresult elapsed(Real real, float* milliseconds, CUevent start, CUevent end) {
    const HandleOwner first = handle_registry().find(start, HandleKind::event);
    const HandleOwner last = handle_registry().find(end, HandleKind::event);
    if (first.known && last.known && first.device != last.device)
        return CUDA_ERROR_INVALID_HANDLE;
    return real(milliseconds, start, end);
}

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuEventCreate, event, flags) {
    const auto create = [&](CUevent* place) { return CUSLICE_PHYSICAL(cuEventCreate)(place, flags); };
    return make_registered(HandleKind::event, event, create, split_driver::cuEventDestroy_v2);
}

CUSLICE_SPLIT_FORM(cuEventDestroy, destroy_event, event)
CUSLICE_SPLIT_FORM(cuEventDestroy_v2, destroy_event, event)
CUSLICE_SPLIT_FORM(cuEventElapsedTime, elapsed, milliseconds, start, end)
CUSLICE_SPLIT_FORM(cuEventElapsedTime_v2, elapsed, milliseconds, start, end)

}  // namespace split_driver

}  // namespace cuslice
