// Modules and libraries: code and variables that the driver places on the GPU by itself.
#include "shim/driver/counted.h"
#include "shim/driver/export.h"

namespace cuslice {

namespace {

template <typename Call, typename Undo>
CUresult counted_load(Function function, Call call, Undo undo) {
    const HookEntry entry;
    return counted_step(function, entry.counts() ? process().current().gpu : nullptr, call, undo);
}

template <typename Call>
CUresult counted_unload(Call call) {
    const HookEntry entry;
    VirtualGpu* gpu = entry.counts() ? process().current().gpu : nullptr;
    if (!gpu || !gpu->limited()) return call();
    DriverPart::Step step = gpu->before_driver_step();
    const CUresult result = call();
    if (result == CUDA_SUCCESS) gpu->after_driver_step(step, nullptr);
    return result;
}

}  // namespace

CUSLICE_HOOK cuModuleLoad(CUmodule* module, const char* file) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_load(
        Function::cuModuleLoad, [&] { return CUSLICE_REAL(cuModuleLoad)(module, file); },
        [&] { return CUSLICE_REAL(cuModuleUnload)(*module); });
}

CUSLICE_HOOK cuModuleLoadData(CUmodule* module, const void* image) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_load(
        Function::cuModuleLoadData, [&] { return CUSLICE_REAL(cuModuleLoadData)(module, image); },
        [&] { return CUSLICE_REAL(cuModuleUnload)(*module); });
}

CUSLICE_HOOK cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                                void** values) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_load(
        Function::cuModuleLoadDataEx,
        [&] { return CUSLICE_REAL(cuModuleLoadDataEx)(module, image, count, options, values); },
        [&] { return CUSLICE_REAL(cuModuleUnload)(*module); });
}

CUSLICE_HOOK cuModuleLoadFatBinary(CUmodule* module, const void* image) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_load(
        Function::cuModuleLoadFatBinary, [&] { return CUSLICE_REAL(cuModuleLoadFatBinary)(module, image); },
        [&] { return CUSLICE_REAL(cuModuleUnload)(*module); });
}

CUSLICE_HOOK cuModuleUnload(CUmodule module) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_unload([&] { return CUSLICE_REAL(cuModuleUnload)(module); });
}

CUSLICE_HOOK cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options, void** jit_values,
                               unsigned jit_count, CUlibraryOption* options, void** values, unsigned count) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_load(
        Function::cuLibraryLoadData,
        [&] {
            return CUSLICE_REAL(cuLibraryLoadData)(library, code, jit_options, jit_values, jit_count, options, values,
                                                   count);
        },
        [&] { return CUSLICE_REAL(cuLibraryUnload)(*library); });
}

CUSLICE_HOOK cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option* jit_options, void** jit_values,
                                   unsigned jit_count, CUlibraryOption* options, void** values, unsigned count) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_load(
        Function::cuLibraryLoadFromFile,
        [&] {
            return CUSLICE_REAL(cuLibraryLoadFromFile)(library, file, jit_options, jit_values, jit_count, options,
                                                       values, count);
        },
        [&] { return CUSLICE_REAL(cuLibraryUnload)(*library); });
}

CUSLICE_HOOK cuLibraryUnload(CUlibrary library) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_unload([&] { return CUSLICE_REAL(cuLibraryUnload)(library); });
}

}  // namespace cuslice
