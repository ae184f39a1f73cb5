// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: (name, version, flags) → symbol, as NVIDIA's drivers answer it.

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fake/driver/api_prologue.h"
#include "fake/driver/context.h"
#include "fake/driver/exported_functions.h"
#include "fake/driver/injection.h"
#include "fake/driver/newer.h"
#include "fake/driver/state.h"
#include "fake/hidden_symbols.h"
#include "fake/private_driver.h"
#include "fake/spec/machine.h"

using namespace cuslice::fake;

namespace {

using Index = std::unordered_map<std::string_view, std::vector<const Exported*>>;

constexpr int kNever = 0x7fffffff;

/// The version from which a look-up finds the row.
int version_of(const Exported& row) {
    static const std::unordered_map<std::string_view, int> interop = {
#define INTEROP_VERSION(symbol, version) {#symbol, version},
#include "fake/driver/interop_versions.def"
#undef INTEROP_VERSION
    };
    if (row.version != 0)
        return row.version;
    const auto found = interop.find(row.symbol);
    return found == interop.end() ? 0 : found->second;
}

/// An older driver has neither the newer functions nor the newer forms of what it has.
bool too_new(const Exported& row) { return version_of(row) > driver_spec().cuda_version(); }

int newest_version() {
    int newest = 0;
    for (const Exported& row : exported_functions()) {
        if (version_of(row) != kNever)
            newest = std::max(newest, version_of(row));
    }
    return newest;
}

bool is_hidden(const char* symbol) {
    for (const Exported& row : exported_functions()) {
        if (std::strcmp(row.symbol, symbol) == 0)
            return version_of(row) != kNever && too_new(row);
    }
    return false;
}

/// Rows by name; made at the first look-up and kept.
const Index& index_by_name() {
    static const auto* index = [] {
        auto* made = new Index;
        for (const Exported& row : exported_functions()) {
            if (version_of(row) != kNever && !too_new(row))
                (*made)[row.name].push_back(&row);
        }
        return made;
    }();
    return *index;
}

/// Every form of a function, the made-up newer ones included where they are asked for.
std::vector<const Exported*> rows_of(const char* name) {
    const auto found = index_by_name().find(name);
    std::vector<const Exported*> rows = found == index_by_name().end() ? std::vector<const Exported*>{} : found->second;
    if (newer_driver()) {
        for (const Exported& row : newer_functions()) {
            if (std::strcmp(row.name, name) == 0)
                rows.push_back(&row);
        }
    }
    return rows;
}

struct Answer {
    void* address = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

const char* inject(const char* items) { return change_injection(items, is_driver_function); }

PrivateState private_state() {
    PrivateState state{.depth = stack_depth()};
    const DriverLock hold;
    for (const auto& gpu : driver().gpus)
        state.contexts += gpu->books.contexts();
    return state;
}

bool takes_foreign_code(CUdevice device) {
    const Gpu* gpu = driver().gpu(device);
    return gpu != nullptr && gpu->spec.foreign_code;
}

/// The newest form that is no newer than the version asked for. A function that has per-thread forms answers the
/// per-thread flag with those alone; one that has none answers with the only forms there are.
Answer look_up(const char* name, int version, cuuint64_t flags) {
    static constexpr PrivateDriver kOwnDriver{&cuDevicePrimaryCtxRetain, &cuDevicePrimaryCtxRelease_v2,
                                              &cuModuleLoadData, &cuStreamBeginCapture_v2, private_state};
    if (std::strcmp(name, kPrivateDriver) == 0)
        return {const_cast<PrivateDriver*>(&kOwnDriver), CU_GET_PROC_ADDRESS_SUCCESS};
    if (std::strcmp(name, kTakesForeignCode) == 0)
        return {reinterpret_cast<void*>(&takes_foreign_code), CU_GET_PROC_ADDRESS_SUCCESS};
    if (std::strcmp(name, kInject) == 0)
        return {reinterpret_cast<void*>(&inject), CU_GET_PROC_ADDRESS_SUCCESS};
    const std::vector<const Exported*> rows = rows_of(name);
    if (rows.empty())
        return {};
    bool per_thread = false;
    if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0) {
        for (const Exported* row : rows)
            per_thread = per_thread || row->per_thread;
    }
    const Exported* best = nullptr;
    for (const Exported* row : rows) {
        if (row->per_thread != per_thread || version_of(*row) > version)
            continue;
        if (best == nullptr || version_of(*row) > version_of(*best))
            best = row;
    }
    if (best == nullptr)
        return {nullptr, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT};
    return {best->address, CU_GET_PROC_ADDRESS_SUCCESS};
}

constexpr cuuint64_t kAllFlags = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

bool valid_flags(cuuint64_t flags) { return (flags & ~kAllFlags) == 0; }

}  // namespace

namespace cuslice::fake {

/// Programs that look for symbols themselves are to find what the driver's version has.
[[gnu::constructor]] void hide_newer_functions() {
    if (driver_spec().cuda_version() < newest_version())
        hide_symbols(is_hidden);
}

}  // namespace cuslice::fake

CUSLICE_ENTRY_ANYTIME(cuGetProcAddress, symbol, pfn, version, flags) {
    if (symbol == nullptr || pfn == nullptr || !valid_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    const Answer answer = look_up(symbol, version, flags);
    if (answer.address == nullptr)
        return CUDA_ERROR_NOT_FOUND;
    *pfn = answer.address;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY_ANYTIME(cuGetProcAddress_v2, symbol, pfn, version, flags, status) {
    if (symbol == nullptr || pfn == nullptr || !valid_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    const Answer answer = look_up(symbol, version, flags);
    *pfn = answer.address;
    if (status != nullptr)
        *status = answer.status;
    return CUDA_SUCCESS;
}
