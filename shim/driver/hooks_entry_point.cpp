// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: the real driver answers with the caller's own arguments, so that version, stream flag and status
// are always right; then the pointer that came back is exchanged if one of our hooks stands before it. Everything else
// is the driver's own pointer and costs nothing from then on.
#include "shim/driver/export.h"
#include "shim/driver/gates.h"
#include "shim/driver/hook_map.h"
#include "shim/driver/newer_captures.h"
#include "shim/driver/older_driver.h"
#include "shim/driver/runtime_view.h"
#include "shim/driver/second_stage.h"
#include "shim/entry.h"
#include "shim/log.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice {

namespace {

// A newer form of a function that we hook, which this version of cuslice doesn't know. Handing it out would be a way
// round the limit, so the driver might as well not have it.
bool steps_round(const char* name, const void* real) {
    return name && HookMap::hooked_name(name) >= 0 && !HookMap::is_listed_form(name, real);
}

// Returns the stub to hand out for an unknown function that may begin a capture of which caches have to know; else
// null.
void* watched(const char* name, void* real) {
    return (process().may_cache() || process().shares_time()) && begins_capture(name) ? newer_capture(real) : nullptr;
}

constinit std::atomic<bool> said_of[HookMap::kMaxHooks]{};

// Once for each name: every library with a runtime of its own asks for all of them.
void report_refused(const char* name, int version) {
    if (said_of[HookMap::hooked_name(name)].exchange(true, std::memory_order_relaxed))
        return;
    LogLine line;
    log_line(LogLevel::warn,
             line.append("the driver has a form of ", name, " for CUDA version ", version,
                         " that this version of cuslice does not know; it is refused, as it would bypass the limit."
                         " Update cuslice, or run without it"));
}

constinit std::atomic<bool> said_of_launches{false};

// Not refused, as the driver's own time slices go on: the job has more than its share, which is said.
void report_unknown_launch(const char* name) {
    if (said_of_launches.exchange(true, std::memory_order_relaxed))
        return;
    LogLine line;
    log_line(LogLevel::warn, line.append("the driver has ", name,
                                         ", in a form that this version of cuslice does not "
                                         "know: what it starts does not wait for the job's share of the GPU's time. "
                                         "Update cuslice"));
}

// Exchanges what the driver has answered for what the program is to have of it. False: it gets nothing.
bool exchange(const char* symbol, void** pfn, int version, bool runtime) {
    if (!pfn || !*pfn)
        return true;  // the driver has given nothing
    *pfn = exported_form(*pfn);
    if (void* hook = hook_map().hook_for(*pfn)) {
        *pfn = runtime ? runtime_form(*pfn, hook) : hook;
    } else if (void* watching = watched(symbol, *pfn)) {
        *pfn = watching;
    } else if (steps_round(symbol, *pfn)) {
        report_refused(symbol, version);
        return false;
    } else if (process().shares_time() && is_unknown_launch(symbol, *pfn)) {
        report_unknown_launch(symbol);
    }
    return true;
}

}  // namespace

CUSLICE_HOOK_ANYTIME(cuGetProcAddress, symbol, pfn, version, flags) {
    if (ready() != Readiness::ready)
        return CUDA_ERROR_NOT_INITIALIZED;
    void* given = pfn ? *pfn : nullptr;
    const bool runtime = is_runtime(__builtin_return_address(0), symbol, version);
    const CUresult result = ask_driver(symbol, pfn, version, flags);
    if (result != CUDA_SUCCESS || exchange(symbol, pfn, version, runtime))
        return result;
    *pfn = given;  // as a driver does that lacks the function
    return CUDA_ERROR_NOT_FOUND;
}

CUSLICE_HOOK_ANYTIME(cuGetProcAddress_v2, symbol, pfn, version, flags, status) {
    if (ready() != Readiness::ready)
        return CUDA_ERROR_NOT_INITIALIZED;
    const bool runtime = is_runtime(__builtin_return_address(0), symbol, version);
    const CUresult result = CUSLICE_REAL(cuGetProcAddress_v2)(symbol, pfn, version, flags, status);
    if (result != CUDA_SUCCESS || exchange(symbol, pfn, version, runtime))
        return result;
    *pfn = nullptr;
    if (status)
        *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return result;
}

}  // namespace cuslice
