// SPDX-License-Identifier: Apache-2.0
// Answers the runtime shim's questions (shim/runtime/).
#include "shim/runtime/split_view.h"

#include <dlfcn.h>

#include <atomic>

#include "shim/driver/export.h"
#include "shim/driver/runtime_view.h"
#include "shim/entry.h"
#include "shim/log.h"
#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/real_dlopen.h"
#include "virtual_gpu/split/current_context.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

namespace {

constinit std::atomic<bool> held[VirtualParts::kMax]{};

// The runtime's own use of a primary context. A reset has ended it, and the next use begins it anew. Threads that come
// at once may use it twice, which does no harm: it lives as long as the process.
CUresult hold(int ordinal) {
    if (held[ordinal].exchange(true) && virtual_contexts().primary(ordinal).lives)
        return CUDA_SUCCESS;
    CUcontext context = nullptr;
    const CUresult result = cuDevicePrimaryCtxRetain(&context, ordinal);
    if (result != CUDA_SUCCESS)
        held[ordinal] = false;
    return result;
}

int make_current(int ordinal) {
    if (!split().device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    if (const CUresult result = hold(ordinal); result != CUDA_SUCCESS)
        return result;
    return cuCtxSetCurrent(virtual_contexts().primary(ordinal).handle());
}

void say_too_old(const void* function) {
    Dl_info module{};
    LogLine line("the CUDA runtime in ");
    line.append(Libdl::dladdr(function, &module) && module.dli_fname ? module.dli_fname : "this process");
    line.append(" is older than 11.3, and isn't supported where GPUs are split: use that of CUDA 11.3 or newer");
    log_line(LogLevel::warn, line);
}

constexpr SplitView kView{
    .loaded = [](const char* soname) { return real_dlopen()(soname, RTLD_NOW | RTLD_NOLOAD); },
    .open = [] { return split().is_open() || (cuInit(0) == CUDA_SUCCESS && split().is_open()); },
    .count = [] { return split().count(); },
    .physical_of =
        [](int ordinal) {
            const Split::Device* device = split().device(ordinal);
            return device ? device->physical : CU_DEVICE_INVALID;
        },
    .shown = [](int physical) { return to_virtual(CUdevice{physical}); },
    .current = CurrentVirtual::device,
    .siblings = [](int a, int b) { return split().siblings(a, b); },
    .make_current = make_current,
    .has_company = [](int ordinal) { return virtual_contexts().has_company(virtual_contexts().primary(ordinal)); },
    .reset = [](int ordinal) { return int{reset_by_runtime(ordinal, cuDevicePrimaryCtxReset_v2(ordinal))}; },
    .say_too_old = say_too_old,
    .priority_of =
        [](int ordinal, int* priority) {
            const Split::Device* device = split().device(ordinal);
            if (!device || !device->part.priority)
                return false;
            *priority = *device->part.priority;
            return true;
        },
};

}  // namespace

}  // namespace cuslice

extern "C" __attribute__((visibility("default"))) const cuslice::SplitView* cuslice_split_view() {
    return cuslice::ready() == cuslice::Readiness::ready && cuslice::split().installed() ? &cuslice::kView : nullptr;
}
