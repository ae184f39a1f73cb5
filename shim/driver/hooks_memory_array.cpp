// SPDX-License-Identifier: Apache-2.0
// Arrays: what their elements take is charged before the driver is asked, as other memory is. What padding comes on top
// is the driver's own footprint, measured like a context's.
#include <algorithm>

#include "shim/driver/array_size.h"
#include "shim/driver/counted.h"
#include "shim/driver/export.h"

namespace cuslice {

namespace {

template <typename Handle, typename Destroy>
CUresult counted_destroy(Handle array, Destroy destroy) {
    const auto name = reinterpret_cast<CUdeviceptr>(array);
    const Allocation known = gpu_state().allocations.find(name);
    VirtualGpu* gpu = known.address ? &process().gpu(known.gpu) : process().current().gpu;
    if (!gpu || !gpu->limited())
        return destroy(array);
    DriverFootprint::Step step;
    if (gpu->physical().measures_steps())
        step = DriverSteps(*gpu).before();
    const CUresult result = charged_free(
        name, [&] { return destroy(array); },
        [&](CUresult, const Allocation& freed) {
            if (freed.address)
                gpu->budget().release(freed.bytes);
        });
    if (result != CUDA_SUCCESS)
        return result;
    if (gpu->physical().measures_steps())
        DriverSteps(*gpu).after(step, nullptr);
    else
        gpu->driver_gave_back();  // the padding, or memory of another process's that it was mapped from
    return result;
}

template <typename Create, typename Destroy, typename Handle, typename... Arguments>
CUresult counted_create(Create create, Destroy destroy, uint64_t least, Handle* array, Arguments... arguments) {
    const HookEntry entry;
    const Process::Current current = counted_current(entry);
    VirtualGpu* gpu = current.gpu;
    if (!gpu || !gpu->limited() || !array)
        return create(array, arguments...);
    LimitError why;
    DriverFootprint::Step step = DriverSteps(*gpu).before();
    if (!least)
        gpu->budget().begin_release();
    else if (!gpu->reserve(least, &why))
        return refuse(create.function, *gpu, why);
    HookReservation reservation(*gpu, least);
    Handle made = nullptr;
    const CUresult result = charged_allocation(
        reservation,
        [&] { return ask_driver(*gpu, least ? least : ~0ull, [&] { return create(&made, arguments...); }); },
        [&] { return record(reinterpret_cast<CUdeviceptr>(made), least, current, Kind::array); },
        [&] { destroy(made); });
    if (result != CUDA_SUCCESS)
        return result;
    if (DriverSteps(*gpu).after(step, &why)) {
        *array = made;
        return result;
    }
    counted_destroy(made, destroy);
    gpu->refresh_if_stale();
    if (why.of != LimitOf::other_part) {  // which the padding alone is charged to
        why.requested += least;
        why.used -= std::min(why.used, Budget::charged(least));
    }
    return refuse(create.function, *gpu, why, least);
}

template <typename Destroy, typename Handle>
CUresult ended(Destroy destroy, Handle array) {
    const HookEntry entry;
    return entry.counts() ? counted_destroy(array, destroy) : destroy(array);
}

constexpr auto create_2d = [](auto create, CUarray* array, const auto* descriptor) {
    return counted_create(create, CUSLICE_REAL(cuArrayDestroy), least_2d(descriptor), array, descriptor);
};
constexpr auto create_3d = [](auto create, CUarray* array, const auto* descriptor) {
    return counted_create(create, CUSLICE_REAL(cuArrayDestroy), least_3d(descriptor), array, descriptor);
};

}  // namespace

CUSLICE_HOOK_FORM(cuArrayCreate, create_2d, array, descriptor)
CUSLICE_HOOK_FORM(cuArrayCreate_v2, create_2d, array, descriptor)
CUSLICE_HOOK_FORM(cuArray3DCreate, create_3d, array, descriptor)
CUSLICE_HOOK_FORM(cuArray3DCreate_v2, create_3d, array, descriptor)

CUSLICE_HOOK(cuMipmappedArrayCreate, array, descriptor, levels) {
    return counted_create(CUSLICE_REAL(cuMipmappedArrayCreate), CUSLICE_REAL(cuMipmappedArrayDestroy),
                          least_3d(descriptor, levels), array, descriptor, levels);
}

CUSLICE_HOOK_FORM(cuArrayDestroy, ended, array)
CUSLICE_HOOK_FORM(cuMipmappedArrayDestroy, ended, array)

}  // namespace cuslice
