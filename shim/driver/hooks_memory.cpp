// SPDX-License-Identifier: Apache-2.0
// cuMemAlloc, cuMemAllocPitch, cuMemAllocManaged and cuMemFree, in their present and their old 32-bit forms.
#include "shim/driver/cached.h"
#include "shim/driver/counted.h"
#include "shim/driver/cuda_library.h"
#include "shim/driver/export.h"
#include "shim/driver/recorded.h"

namespace cuslice {

namespace {

void free_again(CUdeviceptr address) { CUSLICE_REAL(cuMemFree_v2)(address); }
void free_again_v1(CUdeviceptr address) { CUSLICE_REAL(cuMemFree)(static_cast<CUdeviceptr_v1>(address)); }

// Rows are padded to a pitch that only the driver knows for certain. An H200's pads 1,000 bytes to 1,024
// (docs/results/), which a step of 512 gives. It is taken beforehand, so that nothing is allocated that doesn't fit;
// what is wrong with it for other widths and GPUs is settled afterwards.
constexpr uint64_t kPitchStep = 512;

bool expected_pitch_bytes(uint64_t width, uint64_t height, uint64_t* bytes) {
    uint64_t up = 0;
    return !__builtin_add_overflow(width, kPitchStep - 1, &up) &&
           !__builtin_mul_overflow(up / kPitchStep * kPitchStep, height, bytes);
}

template <typename Pointer, typename Size, typename Call, typename Free>
CUresult counted_pitch(Function function, uint64_t width, uint64_t height, Pointer* pointer, Size* pitch, Call call,
                       Free free) {
    const HookEntry entry;
    const Process::Current current = counted_current(entry);
    VirtualGpu* gpu = current.gpu;
    uint64_t expected = 0;
    // A product that overflows is the driver's to refuse.
    if (!gpu || !gpu->limited() || !expected_pitch_bytes(width, height, &expected))
        return call(pointer, pitch);
    LimitError why;
    expected = rounded_size(*gpu, expected);
    if (!gpu->reserve(expected, &why))
        return refuse(function, *gpu, why);
    HookReservation reservation(*gpu, expected);
    OutParameter<Pointer> made(pointer);
    OutParameter<Size> chosen(pitch);
    uint64_t padded = 0;
    const auto record_padded = [&] {
        padded = rounded_size(*gpu, static_cast<uint64_t>(*chosen) * height);
        const uint64_t more = padded > expected ? Budget::charged(padded) - Budget::charged(expected) : 0;
        if (!gpu->reserve(more, &why))
            return refuse(function, *gpu, why);
        HookReservation padding(*gpu, more);
        const CUresult recorded = record(*made, padded, current, Kind::pitch);
        if (recorded == CUDA_SUCCESS)
            padding.commit();
        return recorded;
    };
    const CUresult result = charged_allocation(
        reservation, [&] { return ask_driver(*gpu, expected, [&] { return call(made.place(), chosen.place()); }); },
        record_padded, [&] { free(*made); });
    if (result != CUDA_SUCCESS)
        return result;
    if (padded < expected)
        gpu->budget().adjust(expected, padded);
    made.keep();
    chosen.keep();
    return result;
}

// How much is written down of an allocation whose pitch is the driver's to choose.
template <typename Size>
auto pitch_bytes(const Size* pitch, uint64_t width, uint64_t height) {
    return [=](CUresult result) { return (result == CUDA_SUCCESS ? uint64_t{*pitch} : width) * height; };
}

// Each way apart from the hook, which saves no register then.
[[gnu::noinline]] CUresult allocate_directly(CUdeviceptr* pointer, uint64_t bytes) {
    return counted_allocation(
        Function::cuMemAlloc_v2, Kind::memory, bytes, pointer,
        [&](CUdeviceptr* made) { return CUSLICE_REAL(cuMemAlloc_v2)(made, bytes); }, free_again);
}

// Charged with nothing: it is the driver's footprint then, as NVML has it.
[[gnu::cold, gnu::noinline]] CUresult allocate_with_context(CUdeviceptr* pointer, uint64_t bytes) {
    return counted_allocation(
        Function::cuMemAlloc_v2, Kind::memory, 0, pointer,
        [&](CUdeviceptr* made) {
            return ask_driver(*process().current().gpu, bytes,
                              [&] { return CUSLICE_REAL(cuMemAlloc_v2)(made, bytes); });
        },
        free_again);
}

// Where the limit is without the context, what CUDA's own libraries take for themselves comes on top as well: a program
// that has taken all of its limit could start none of them otherwise.
bool comes_on_top(const void* caller) {
    if (!(process().features() & Process::kPlusContext))
        return false;
    const VirtualGpu* gpu = process().current().gpu;
    return gpu && gpu->slice().plus_context && is_cuda_library(caller);
}

[[gnu::noinline]] CUresult free_directly(CUdeviceptr address) {
    return counted_free(address, release_freed, [&] { return CUSLICE_REAL(cuMemFree_v2)(address); });
}

[[gnu::noinline]] CUresult allocate_cached(CUdeviceptr* pointer, uint64_t bytes) {
    return cached_allocation<Function::cuMemAlloc_v2, allocate_directly>(pointer, bytes);
}

[[gnu::noinline]] CUresult free_cached(CUdeviceptr address) { return cached_free_or<free_directly>(address); }

// The first call too, and any without a driver.
[[gnu::cold, gnu::noinline]] CUresult allocate_otherwise(CUdeviceptr* dptr, size_t bytesize, const void* caller) {
    if (ready() != Readiness::ready)
        return unavailable();
    return recorded_allocation(
        dptr, [&](CUresult) { return bytesize; },
        [&] {
            if (comes_on_top(caller))
                return allocate_with_context(dptr, bytesize);
            if (!process().caches_anything())
                return allocate_directly(dptr, bytesize);
            return allocate_cached(dptr, bytesize);
        });
}

[[gnu::cold, gnu::noinline]] CUresult free_otherwise(CUdeviceptr dptr) {
    if (ready() != Readiness::ready)
        return unavailable();
    return recorded_free(dptr, 0,
                         [&] { return process().caches_anything() ? free_cached(dptr) : free_directly(dptr); });
}

}  // namespace

// These two ask with one load whether the driver is there and what to pass through.
CUSLICE_HOOK_ANYTIME(cuMemAlloc_v2, dptr, bytesize) {
    const auto features = process().features();
    if (features == (Process::kReady | Process::kCaching))
        return allocate_cached(dptr, bytesize);
    if (features == Process::kReady)
        return allocate_directly(dptr, bytesize);
    return allocate_otherwise(dptr, bytesize, __builtin_return_address(0));
}

CUSLICE_HOOK(cuMemAlloc, dptr, bytesize) {
    return recorded_allocation(
        dptr, [&](CUresult) { return bytesize; },
        [&] {
            return counted_allocation(
                Function::cuMemAlloc, Kind::memory, bytesize, dptr,
                [&](CUdeviceptr_v1* made) { return CUSLICE_REAL(cuMemAlloc)(made, bytesize); }, free_again_v1);
        });
}

CUSLICE_HOOK(cuMemAllocPitch_v2, dptr, pitch, width, height, element_size) {
    return recorded_allocation(dptr, pitch_bytes(pitch, width, height), [&] {
        return counted_pitch(
            Function::cuMemAllocPitch_v2, width, height, dptr, pitch,
            [&](CUdeviceptr* made, size_t* chosen) {
                return CUSLICE_REAL(cuMemAllocPitch_v2)(made, chosen, width, height, element_size);
            },
            free_again);
    });
}

CUSLICE_HOOK(cuMemAllocPitch, dptr, pitch, width, height, element_size) {
    return recorded_allocation(dptr, pitch_bytes(pitch, width, height), [&] {
        return counted_pitch(
            Function::cuMemAllocPitch, width, height, dptr, pitch,
            [&](CUdeviceptr_v1* made, unsigned* chosen) {
                return CUSLICE_REAL(cuMemAllocPitch)(made, chosen, width, height, element_size);
            },
            free_again_v1);
    });
}

CUSLICE_HOOK(cuMemAllocManaged, dptr, bytesize, flags) {
    return recorded_allocation(
        dptr, [&](CUresult) { return bytesize; },
        [&] {
            return counted_allocation(
                Function::cuMemAllocManaged, Kind::managed, bytesize, dptr,
                [&](CUdeviceptr* made) { return CUSLICE_REAL(cuMemAllocManaged)(made, bytesize, flags); }, free_again);
        });
}

CUSLICE_HOOK_ANYTIME(cuMemFree_v2, dptr) {
    const auto features = process().features();
    if (features == (Process::kReady | Process::kCaching))
        return free_cached(dptr);
    return features == Process::kReady ? free_directly(dptr) : free_otherwise(dptr);
}

CUSLICE_HOOK(cuMemFree, dptr) {
    return recorded_free(
        dptr, 0, [&] { return counted_free(dptr, release_freed, [&] { return CUSLICE_REAL(cuMemFree)(dptr); }); });
}

}  // namespace cuslice
