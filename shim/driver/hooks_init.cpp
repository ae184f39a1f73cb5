// SPDX-License-Identifier: Apache-2.0
#include "policy/base/cancellation.h"
#include "shim/driver/export.h"
#include "shim/entry.h"
#include "shim/log.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/scratch.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/selection/visible_devices.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

namespace {

CUresult start(unsigned flags, std::string_view list, bool set) {
    const StartingReal starting;
    if (!split().installed() || split().is_open())
        return CUSLICE_REAL(cuInit)(flags);
    const VisibleDuringInit during(list, set);
    return CUSLICE_REAL(cuInit)(flags);
}

// The driver's answer where CUDA_VISIBLE_DEVICES leaves no GPU. Where GPUs are split it never sees that list.
CUresult answer_to_list() {
    if (!split().installed() || process().gpu_count() != 0)
        return CUDA_SUCCESS;
    return process().gpu_named_twice() ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_NO_DEVICE;
}

}  // namespace

CUSLICE_HOOK_ANYTIME(cuInit, flags) {
    // Drivers open files and start programs here; a thread that is cancelled in the middle of it would leave their
    // locks behind.
    const DisableCancellation starting;
    switch (ready()) {
        case Readiness::ready:
            break;
        case Readiness::bad_configuration:
            return CUDA_ERROR_INVALID_VALUE;
        default:
            return CUDA_ERROR_NO_DEVICE;
    }
    const Scratch<VisibleText> list;
    if (!list)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool set = false;
    if (process().choose_gpus(*list, &set)) {
        const CUresult result = start(flags, list->view(), set);
        if (result != CUDA_SUCCESS)
            return result;
        if (process().open_gpus()) {
            process().tell_frameworks();
            return answer_to_list();
        }
    }
    log_bad_configuration();
    return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace cuslice
