// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/older_driver.h"

#include <string_view>

#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/split/physical.h"

namespace cuslice {

namespace {

struct Listed {
    int version;
    bool per_thread;
};
constexpr cuuint64_t kAllFlags = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
constexpr auto kListed = table_of_functions([](const FunctionRow& row) { return Listed{row.version, row.per_thread}; });

// Calls `visit` with each form of a function that the driver's library exports.
template <typename Visit>
void visit_exported(std::string_view name, Visit visit) {
    for (size_t i = 0; i < kFunctionCount; i++) {
        void* const exported = physical_slot(static_cast<Function>(i));
        if (exported && kFunctions[i].name == name)
            visit(kListed[i], exported);
    }
}

// As drivers answer: the newest form that is no newer than the version asked for. A function that has per-thread forms
// answers the per-thread flag with those alone.
void* newest_form(std::string_view name, int version, bool asked_per_thread) {
    bool per_thread = false;
    visit_exported(name, [&](const Listed& form, void*) { per_thread |= asked_per_thread && form.per_thread; });
    void* newest = nullptr;
    int its_version = 0;
    visit_exported(name, [&](const Listed& form, void* exported) {
        const bool answers = form.per_thread == per_thread && form.version <= version;
        if (!answers || form.version <= its_version)
            return;
        newest = exported;
        its_version = form.version;
    });
    return newest;
}

}  // namespace

CUresult ask_driver(const char* name, void** function, int version, cuuint64_t flags) {
    if (physical_slot(Function::cuGetProcAddress))
        return CUSLICE_REAL(cuGetProcAddress)(name, function, version, flags);
    if (!name || !function || (flags & ~kAllFlags))
        return CUDA_ERROR_INVALID_VALUE;
    const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    void* const found = newest_form(name, version, per_thread);
    if (!found)
        return CUDA_ERROR_NOT_FOUND;
    *function = found;
    return CUDA_SUCCESS;
}

}  // namespace cuslice
