// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/late_binding.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string_view>

#include "config/text.h"
#include "shim/redirect/keeps_runtime.h"
#include "shim/redirect/runtime_library.h"

namespace cuslice {

namespace {

// In place of the functions of a runtime that couldn't be loaded. Name and number are those of driver_types.h.
constexpr uintptr_t kInitFailed = 303;
constexpr char kInitFailedName[] = "cudaErrorSharedObjectInitFailed";
constexpr char kInitFailedText[] = "shared object initialization failed";

struct ChannelFormat {
    int fields[5];
};

uintptr_t refuse() { return kInitFailed; }
const char* name_of_error() { return kInitFailedName; }
const char* text_of_error() { return kInitFailedText; }
ChannelFormat no_channel_format() { return {}; }

template <typename Function>
const void* code_of(Function* function) {
    return reinterpret_cast<const void*>(function);
}

const void* refusal_of(std::string_view name) {
    if (name == "cudaGetErrorName")
        return code_of(name_of_error);
    if (name == "cudaGetErrorString")
        return code_of(text_of_error);
    return name == "cudaCreateChannelDesc" ? code_of(no_channel_format) : code_of(refuse);
}

// The target first: another thread that sees the entry finds it.
void bind(Veneer& veneer, const SharedRuntime& runtime) {
    const void* const target = runtime.find(veneer.name, runtime.argument);
    __atomic_store_n(&veneer.target, target ? target : runtime.lacking, __ATOMIC_RELAXED);
    __atomic_store_n(&veneer.entry, target ? target : veneer.with_name(), __ATOMIC_RELEASE);
}

// As it was when the module was loaded.
bool has_all(const SharedRuntime& runtime, void* table, Reason&) {
    const std::span<Veneer> all = static_cast<LateTable*>(table)->veneers();
    return runtime.lacking || std::all_of(all.begin(), all.end(), [&](const Veneer& veneer) {
               return runtime.find(veneer.name, runtime.argument) != nullptr;
           });
}

// But what another thread has bound.
void refuse_all(LateTable& table) {
    for (Veneer& veneer : table.veneers()) {
        const void* unbound = veneer.unbound();
        __atomic_compare_exchange_n(&veneer.entry, &unbound, refusal_of(veneer.name), false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
    }
    if (__atomic_exchange_n(&table.told, true, __ATOMIC_RELAXED))
        return;
    Reason why;
    why.assign(table.runtime, " can't be loaded: its calls fail with ", kInitFailedName);
    say_of_module(table.module, why);
}

}  // namespace

}  // namespace cuslice

const void* cuslice_redirect_bind(cuslice::Veneer* called) {
    using namespace cuslice;
    const int before = errno;
    LateTable& table = *called->table;
    RuntimeLibrary library;
    if (library.open_file(table.major, table.runtime, has_all, &table)) {
        const SharedRuntime runtime = library.functions();
        for (Veneer& veneer : table.veneers())
            bind(veneer, runtime);
    } else {
        refuse_all(table);
    }
    errno = before;
    return __atomic_load_n(&called->entry, __ATOMIC_ACQUIRE);
}
