// Modules and libraries: code and variables that the driver places on the GPU by itself.
#include "shim/driver/counted.h"
#include "shim/driver/export.h"
#include "virtual_gpu/gpu/image_size.h"

namespace cuslice {

namespace {

// `least`: asked for what the module takes at least.
template <typename Handle, typename Least, typename Call, typename Unload>
CUresult counted_load(Function function, Handle* handle, Least least, Call call, Unload unload) {
    const HookEntry entry;
    VirtualGpu* gpu = entry.counts() ? process().current().gpu : nullptr;
    if (!gpu || !gpu->limited() || !handle) return call(handle);
    Handle loaded = nullptr;
    const CUresult result = counted_step(
        function, gpu, [&] { return call(&loaded); }, [&] { unload(loaded); }, least());
    if (result == CUDA_SUCCESS) *handle = loaded;
    return result;
}

void unload_module(CUmodule module) { CUSLICE_REAL(cuModuleUnload)(module); }
void unload_library(CUlibrary library) { CUSLICE_REAL(cuLibraryUnload)(library); }

// What is unloaded is in a context that need not be the current one: the steps of all GPUs that are in use, from this
// one on.
template <typename Call>
CUresult unload_beside(int ordinal, const VirtualGpu* current, Call& call) {
    for (; ordinal < process().gpu_count(); ordinal++) {
        VirtualGpu& gpu = process().gpu(ordinal);
        if (!gpu.limited() || !gpu.measured() || &gpu == current) continue;
        if (!gpu.measures_steps()) {
            const CUresult result = unload_beside(ordinal + 1, current, call);
            if (result == CUDA_SUCCESS) gpu.driver_gave_back();
            return result;
        }
        DriverPart::Step step = gpu.before_driver_step();
        const CUresult result = unload_beside(ordinal + 1, current, call);
        if (result == CUDA_SUCCESS) gpu.after_driver_step(step, nullptr);
        return result;
    }
    return call();
}

template <typename Call>
CUresult counted_unload(Call call) {
    const HookEntry entry;
    if (!entry.counts()) return call();
    VirtualGpu* gpu = process().current().gpu;
    if (!gpu || !gpu->limited()) return unload_beside(0, nullptr, call);
    DriverPart::Step step = gpu->before_driver_step();
    const CUresult result = unload_beside(0, gpu, call);
    if (result == CUDA_SUCCESS) gpu->after_driver_step(step, nullptr);
    return result;
}

}  // namespace

CUSLICE_HOOK cuModuleLoad(CUmodule* module, const char* file) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_load(
        Function::cuModuleLoad, module, [&] { return least_size_of_image_file(file); },
        [&](CUmodule* loaded) { return CUSLICE_REAL(cuModuleLoad)(loaded, file); }, unload_module);
}

CUSLICE_HOOK cuModuleLoadData(CUmodule* module, const void* image) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_load(
        Function::cuModuleLoadData, module, [&] { return least_size_of_image(image); },
        [&](CUmodule* loaded) { return CUSLICE_REAL(cuModuleLoadData)(loaded, image); }, unload_module);
}

CUSLICE_HOOK cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                                void** values) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_load(
        Function::cuModuleLoadDataEx, module, [&] { return least_size_of_image(image); },
        [&](CUmodule* loaded) { return CUSLICE_REAL(cuModuleLoadDataEx)(loaded, image, count, options, values); },
        unload_module);
}

CUSLICE_HOOK cuModuleLoadFatBinary(CUmodule* module, const void* image) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_load(
        Function::cuModuleLoadFatBinary, module, [&] { return least_size_of_image(image); },
        [&](CUmodule* loaded) { return CUSLICE_REAL(cuModuleLoadFatBinary)(loaded, image); }, unload_module);
}

CUSLICE_HOOK cuModuleUnload(CUmodule module) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_unload([&] { return CUSLICE_REAL(cuModuleUnload)(module); });
}

// A library may place its variables only when something of it is used.
CUSLICE_HOOK cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options, void** jit_values,
                               unsigned jit_count, CUlibraryOption* options, void** values, unsigned count) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_load(
        Function::cuLibraryLoadData, library, [&] { return least_size_of_image(code); },
        [&](CUlibrary* loaded) {
            return CUSLICE_REAL(cuLibraryLoadData)(loaded, code, jit_options, jit_values, jit_count, options, values,
                                                   count);
        },
        unload_library);
}

CUSLICE_HOOK cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option* jit_options, void** jit_values,
                                   unsigned jit_count, CUlibraryOption* options, void** values, unsigned count) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_load(
        Function::cuLibraryLoadFromFile, library, [&] { return least_size_of_image_file(file); },
        [&](CUlibrary* loaded) {
            return CUSLICE_REAL(cuLibraryLoadFromFile)(loaded, file, jit_options, jit_values, jit_count, options,
                                                       values, count);
        },
        unload_library);
}

CUSLICE_HOOK cuLibraryUnload(CUlibrary library) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_unload([&] { return CUSLICE_REAL(cuLibraryUnload)(library); });
}

}  // namespace cuslice
