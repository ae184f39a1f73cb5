// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/initialise.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>

#include "fake/driver/api_prologue.h"
#include "fake/driver/exported_functions.h"
#include "fake/driver/gate.h"
#include "fake/driver/host_room.h"
#include "fake/driver/injection.h"
#include "fake/driver/late.h"
#include "fake/driver/log.h"
#include "fake/driver/physical.h"
#include "fake/driver/skipped_kernels.h"
#include "fake/driver/state.h"
#include "fake/driver/timing.h"
#include "fake/driver/visible.h"
#include "fake/driver/work_queue.h"
#include "fake/duration.h"
#include "fake/spec/machine.h"

namespace cuslice::fake {

namespace {

constinit std::mutex init_lock;
bool initialised_here = false;
bool forked_after_init = false;
CUresult init_result = CUDA_SUCCESS;

/// As with NVIDIA's driver, a child that was forked after cuInit can't use CUDA at all.
void in_forked_child() {
    forked_after_init = true;
    gate = kGateNotInitialised;
}

/// The process ends: its slots go back with their last figures, and whoever still calls is told so.
[[gnu::destructor]] void at_end() {
    if (!initialised_here || forked_after_init)
        return;
    gate.fetch_or(kGateDeinitialised);
    log_all_skipped();
    end_timing();
    remove_files_at_end();
    for (const auto& gpu : driver().gpus) {
        if (gpu->opened())
            gpu->books.end_slot();
    }
}

CUresult not_ready(const std::string& why) {
    log_line(why);
    return CUDA_ERROR_SYSTEM_NOT_READY;
}

CUresult read_settings(Driver& state) {
    std::string error;
    MachineSpec machine;
    const bool named = std::getenv("CUSLICE_FAKE") != nullptr;
    if (!machine_from_environment(machine, error)) {
        log_line(error);
        return named ? CUDA_ERROR_SYSTEM_NOT_READY : CUDA_ERROR_NO_DEVICE;
    }
    const char* kernels = std::getenv("CUSLICE_FAKE_KERNELS");
    if (kernels != nullptr && std::strcmp(kernels, "error") != 0 && std::strcmp(kernels, "skip") != 0)
        return not_ready("CUSLICE_FAKE_KERNELS: '" + std::string(kernels) + "' is neither skip nor error");
    state.kernels_are_errors = kernels != nullptr && std::strcmp(kernels, "error") == 0;
    const char* inject = std::getenv("CUSLICE_FAKE_INJECT");
    const bool injected = inject != nullptr && *inject != '\0' && !injection_changed();
    if (injected && !injection().parse(inject, is_driver_function, error))
        return not_ready(error);
    const char* streams = std::getenv("CUSLICE_FAKE_STREAMS");
    if (streams != nullptr && *streams != '\0' && !make_streams(streams, error))
        return not_ready(error);
    const char* addresses = std::getenv("CUSLICE_FAKE_ADDRESSES");
    const bool high_addresses = addresses != nullptr && std::strcmp(addresses, "high") == 0;
    if (addresses != nullptr && *addresses != '\0' && !high_addresses)
        return not_ready("CUSLICE_FAKE_ADDRESSES: '" + std::string(addresses) + "' is not high");
    if (!set_host_bound(std::getenv("CUSLICE_FAKE_HOST"), error))
        return not_ready(error);
    bool repeated = false;
    machine = visible_gpus(machine, std::getenv("CUDA_VISIBLE_DEVICES"), std::getenv("CUDA_DEVICE_ORDER"), &repeated);
    if (repeated)
        return CUDA_ERROR_INVALID_DEVICE;  // as an H200's driver does (580)
    if (machine.empty())
        return CUDA_ERROR_NO_DEVICE;
    int ordinal = 0;
    if (!start_timing(error))
        return not_ready(error);
    for (GpuSpec& spec : machine)
        state.gpus.push_back(std::make_unique<Gpu>(std::move(spec), ordinal++, high_addresses));
    return CUDA_SUCCESS;
}

}  // namespace

CUresult initialise() {
    const std::lock_guard hold(init_lock);
    if (forked_after_init)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!initialised_here) {
        init_result = read_settings(driver());
        pause_for(driver_spec().init_time);
        initialised_here = true;
        if (init_result == CUDA_SUCCESS) {
            pthread_atfork(nullptr, nullptr, in_forked_child);
            gate =
                (injection().empty() ? 0U : unsigned{kGateInjection}) | (WorkQueue::late() ? unsigned{kGateLate} : 0U);
        }
    }
    if (init_result != CUDA_SUCCESS)
        return init_result;
    return pass_gate("cuInit", true);
}

}  // namespace cuslice::fake
