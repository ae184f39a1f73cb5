// SPDX-License-Identifier: Apache-2.0
// All that happens when the library is loaded, in every program: what can't be known any more when CUDA is first
// called. And what happens when the program ends.
#include "policy/base/kernel_memory.h"
#include "shim/driver/report.h"
#include "shim/host_memory.h"
#include "shim/log.h"
#include "shim/process/process.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/selection/framework_environment.h"
#include "virtual_gpu/selection/host_environment.h"

namespace cuslice {

namespace {

__attribute__((constructor)) void loaded() {
    note_stderr();
    report_no_kernel_memory.store(&report_no_host_memory, std::memory_order_relaxed);
    keep_handed_on();
    set_growth_at_start();
}

// After the program's own. A program that is killed, or calls _exit or abort, doesn't come through here.
__attribute__((destructor)) void ended() {
    // Most programs have never called CUDA.
    if (process().readiness() == Readiness::not_yet)
        return;
    const DisableCancellation uncancelled;
    report_last_refusals();
    report_use();
    process().turns().end();
    process().recording().finish();
    process().caches().publisher().remove(gpu_state().sharing.folder.c_str());
}

}  // namespace

}  // namespace cuslice
