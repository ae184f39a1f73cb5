// Arrays: what their elements take is charged before the driver is asked, as other memory is. What padding comes on top
// is the driver's own part, measured like a context's.
#include <algorithm>
#include <bit>

#include "shim/driver/counted.h"
#include "shim/driver/export.h"

namespace cuslice {

namespace {

// Of one channel; 0 for formats in which elements share bytes.
std::uint64_t channel_bytes(CUarray_format format) {
    switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
            return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
            return 2;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
            return 4;
        default:
            return 0;
    }
}

constexpr unsigned kWithoutMemory = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
constexpr unsigned kLayers = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP;

struct Extents {
    std::uint64_t width, height, depth;
    std::uint64_t bytes(std::uint64_t element) const {
        std::uint64_t all = element;
        for (const std::uint64_t extent :
             {width, std::max<std::uint64_t>(height, 1), std::max<std::uint64_t>(depth, 1)})
            if (__builtin_mul_overflow(all, extent, &all)) return ~0ull;
        return all;
    }
};

// What an array takes at least; 0 where that isn't known.
template <typename Descriptor>
std::uint64_t least_2d(const Descriptor* d) {
    return d ? Extents{d->Width, d->Height, 0}.bytes(channel_bytes(d->Format) * d->NumChannels) : 0;
}

template <typename Descriptor>
std::uint64_t least_3d(const Descriptor* d, unsigned levels = 1) {
    if (!d || d->Flags & kWithoutMemory) return 0;
    const std::uint64_t element = channel_bytes(d->Format) * d->NumChannels;
    Extents extents{d->Width, d->Height, d->Depth};
    const bool layers = d->Flags & kLayers;
    const std::uint64_t largest = std::max({extents.width, extents.height, layers ? 0 : extents.depth});
    std::uint64_t sum = 0;
    for (unsigned level = std::clamp(levels, 1u, std::max(1u, static_cast<unsigned>(std::bit_width(largest)))); level;
         level--) {
        if (__builtin_add_overflow(sum, extents.bytes(element), &sum)) return ~0ull;
        extents.width = std::max<std::uint64_t>(extents.width / 2, 1);
        extents.height /= 2;
        if (!layers) extents.depth /= 2;
    }
    return sum;
}

// `call`: given where the handle goes; `destroy`: its counterpart.
template <typename Handle, typename Destroy>
CUresult counted_destroy(Handle array, Destroy destroy) {
    const auto name = reinterpret_cast<CUdeviceptr>(array);
    const Allocation known = gpu_state().allocations.find(name);
    VirtualGpu* gpu = known.address ? &process().gpu(known.gpu) : process().current().gpu;
    if (!gpu || !gpu->limited()) return destroy(array);
    DriverPart::Step step;
    if (gpu->measures_steps()) step = gpu->before_driver_step();
    const CUresult result = charged_free(
        name, [&] { return destroy(array); },
        [&](CUresult, const Allocation& freed) {
            if (freed.address) gpu->budget().release(freed.bytes);
        });
    if (result != CUDA_SUCCESS) return result;
    if (gpu->measures_steps())
        gpu->after_driver_step(step, nullptr);
    else
        gpu->driver_gave_back();  // the padding, or memory of another process's that it was mapped from
    return result;
}

template <typename Handle, typename Call, typename Destroy>
CUresult counted_create(Function function, Handle* array, std::uint64_t least, Call call, Destroy destroy) {
    const HookEntry entry;
    const Process::Current current = entry.counts() ? process().current() : Process::Current{};
    VirtualGpu* gpu = current.gpu;
    if (!gpu || !gpu->limited() || !array) return call(array);
    OverLimit why;
    DriverPart::Step step = gpu->before_driver_step();
    if (!least)
        gpu->budget().begin_release();
    else if (!gpu->reserve(least, &why))
        return refuse(function, *gpu, why);
    HookReservation reservation(*gpu, least);
    Handle made = nullptr;
    const CUresult result = charged_allocation(
        reservation, [&] { return ask_driver(*gpu, least ? least : ~0ull, [&] { return call(&made); }); },
        [&] { return record(reinterpret_cast<CUdeviceptr>(made), least, current, Kind::array); },
        [&] { destroy(made); });
    if (result != CUDA_SUCCESS) return result;
    if (gpu->after_driver_step(step, &why)) {
        *array = made;
        return result;
    }
    const CUresult refusal = refuse(function, *gpu, why, least);
    counted_destroy(made, destroy);
    return refusal;
}

CUresult destroy_array(CUarray array) { return CUSLICE_REAL(cuArrayDestroy)(array); }
CUresult destroy_mipmap(CUmipmappedArray array) { return CUSLICE_REAL(cuMipmappedArrayDestroy)(array); }

template <typename Handle, typename Destroy>
CUresult ended(Handle array, Destroy destroy) {
    const HookEntry entry;
    return entry.counts() ? counted_destroy(array, destroy) : destroy(array);
}

}  // namespace

CUSLICE_HOOK cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_create(
        Function::cuArrayCreate_v2, array, least_2d(descriptor),
        [&](CUarray* made) { return CUSLICE_REAL(cuArrayCreate_v2)(made, descriptor); }, destroy_array);
}

CUSLICE_HOOK cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v1* descriptor) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_create(
        Function::cuArrayCreate, array, least_2d(descriptor),
        [&](CUarray* made) { return CUSLICE_REAL(cuArrayCreate)(made, descriptor); }, destroy_array);
}

CUSLICE_HOOK cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_create(
        Function::cuArray3DCreate_v2, array, least_3d(descriptor),
        [&](CUarray* made) { return CUSLICE_REAL(cuArray3DCreate_v2)(made, descriptor); }, destroy_array);
}

CUSLICE_HOOK cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v1* descriptor) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_create(
        Function::cuArray3DCreate, array, least_3d(descriptor),
        [&](CUarray* made) { return CUSLICE_REAL(cuArray3DCreate)(made, descriptor); }, destroy_array);
}

CUSLICE_HOOK cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                                    unsigned levels) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_create(
        Function::cuMipmappedArrayCreate, array, least_3d(descriptor, levels),
        [&](CUmipmappedArray* made) { return CUSLICE_REAL(cuMipmappedArrayCreate)(made, descriptor, levels); },
        destroy_mipmap);
}

CUSLICE_HOOK cuArrayDestroy(CUarray array) {
    if (ready() != Readiness::ready) return unavailable();
    return ended(array, destroy_array);
}

CUSLICE_HOOK cuMipmappedArrayDestroy(CUmipmappedArray array) {
    if (ready() != Readiness::ready) return unavailable();
    return ended(array, destroy_mipmap);
}

}  // namespace cuslice
