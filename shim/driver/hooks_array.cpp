// Arrays: their size depends on formats and padding that the driver keeps to itself, so it is measured, like a
// context's.
#include "shim/driver/counted.h"
#include "shim/driver/export.h"

namespace cuslice {

namespace {

template <typename Call, typename Undo>
CUresult measured(Function function, Call call, Undo undo) {
    const HookEntry entry;
    return counted_step(function, entry.counts() ? process().current().gpu : nullptr, call, undo);
}

// The figure is read again when it matters next.
CUresult given_back(CUresult result) {
    if (result == CUDA_SUCCESS && !inside_hook && process().limits_anything())
        if (VirtualGpu* gpu = process().current().gpu) gpu->driver_gave_back();
    return result;
}

}  // namespace

CUSLICE_HOOK cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
    if (ready() != Readiness::ready) return unavailable();
    return measured(
        Function::cuArrayCreate_v2, [&] { return CUSLICE_REAL(cuArrayCreate_v2)(array, descriptor); },
        [&] { return CUSLICE_REAL(cuArrayDestroy)(*array); });
}

CUSLICE_HOOK cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v1* descriptor) {
    if (ready() != Readiness::ready) return unavailable();
    return measured(
        Function::cuArrayCreate, [&] { return CUSLICE_REAL(cuArrayCreate)(array, descriptor); },
        [&] { return CUSLICE_REAL(cuArrayDestroy)(*array); });
}

CUSLICE_HOOK cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
    if (ready() != Readiness::ready) return unavailable();
    return measured(
        Function::cuArray3DCreate_v2, [&] { return CUSLICE_REAL(cuArray3DCreate_v2)(array, descriptor); },
        [&] { return CUSLICE_REAL(cuArrayDestroy)(*array); });
}

CUSLICE_HOOK cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v1* descriptor) {
    if (ready() != Readiness::ready) return unavailable();
    return measured(
        Function::cuArray3DCreate, [&] { return CUSLICE_REAL(cuArray3DCreate)(array, descriptor); },
        [&] { return CUSLICE_REAL(cuArrayDestroy)(*array); });
}

CUSLICE_HOOK cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                                    unsigned levels) {
    if (ready() != Readiness::ready) return unavailable();
    return measured(
        Function::cuMipmappedArrayCreate,
        [&] { return CUSLICE_REAL(cuMipmappedArrayCreate)(array, descriptor, levels); },
        [&] { return CUSLICE_REAL(cuMipmappedArrayDestroy)(*array); });
}

CUSLICE_HOOK cuArrayDestroy(CUarray array) {
    if (ready() != Readiness::ready) return unavailable();
    return given_back(CUSLICE_REAL(cuArrayDestroy)(array));
}

CUSLICE_HOOK cuMipmappedArrayDestroy(CUmipmappedArray array) {
    if (ready() != Readiness::ready) return unavailable();
    return given_back(CUSLICE_REAL(cuMipmappedArrayDestroy)(array));
}

}  // namespace cuslice
