#include "policy/uncancelled.h"
#include "shim/driver/export.h"
#include "shim/entry.h"
#include "shim/log.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice {

CUSLICE_HOOK cuInit(unsigned flags) {
    // Drivers open files and start programs here; a thread that is cancelled in the middle of it would leave their
    // locks behind.
    const Uncancelled starting;
    switch (ready()) {
        case Readiness::ready:
            break;
        case Readiness::bad_configuration:
            return CUDA_ERROR_INVALID_VALUE;
        default:
            return CUDA_ERROR_NO_DEVICE;
    }
    if (process().choose_gpus()) {
        const CUresult result = CUSLICE_REAL(cuInit)(flags);
        if (result != CUDA_SUCCESS || process().open_gpus()) return result;
    }
    say_to_stderr(line_of(process().error()).view());
    return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace cuslice
