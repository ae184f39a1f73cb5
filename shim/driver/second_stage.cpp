// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/second_stage.h"

#include <atomic>

#include "shim/driver/export.h"
#include "virtual_gpu/split/physical.h"

namespace cuslice {

namespace {

struct Form {
    int version;
    bool per_thread;
};
constexpr auto kForms = table_of_functions([](const FunctionRow& row) { return Form{row.version, row.per_thread}; });

enum class Stages : int { unknown, one, two };
constinit std::atomic<Stages> stages{Stages::unknown};
constinit std::atomic<void*> handed_out_for[kFunctionCount]{};

void* look_up(size_t function) {
    const Form& form = kForms[function];
    const char* const name = kFunctions[function].name;
    const cuuint64_t flags =
        form.per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT;
    void* found = nullptr;
    CUresult result = CUSLICE_PHYSICAL(cuGetProcAddress_v2)(name, &found, form.version, flags, nullptr);
    if (result != CUDA_SUCCESS)
        result = CUSLICE_PHYSICAL(cuGetProcAddress)(name, &found, form.version, flags);
    return result == CUDA_SUCCESS ? found : nullptr;
}

// One function tells which kind of driver it is. Several threads may fill the table at once, with the same.
Stages count_stages() {
    constexpr auto kProbe = static_cast<size_t>(Function::cuInit);
    void* const probe = look_up(kProbe);
    if (!probe || probe == physical_slot(Function::cuInit))
        return Stages::one;
    for (size_t i = 0; i < kFunctionCount; i++)
        if (kForms[i].version > 0 && physical_slot(static_cast<Function>(i)))
            handed_out_for[i] = look_up(i);
    return Stages::two;
}

}  // namespace

void* exported_form(void* handed_out) {
    Stages known = stages.load(std::memory_order_acquire);
    if (known == Stages::unknown) {
        known = count_stages();
        stages.store(known, std::memory_order_release);
    }
    if (known == Stages::two)
        for (size_t i = 0; i < kFunctionCount; i++)
            if (handed_out_for[i].load(std::memory_order_relaxed) == handed_out)
                return physical_slot(static_cast<Function>(i));
    return handed_out;
}

}  // namespace cuslice
