// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/runtime_view.h"

#include <atomic>
#include <cstring>

#include "shim/driver/export.h"
#include "shim/log.h"
#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/split/current_context.h"
#include "virtual_gpu/split/physical.h"
#include "virtual_gpu/split/split.h"

// The runtime shim, where it is loaded.
extern "C" __attribute__((weak)) void* cuslice_runtime_12[];

namespace cuslice {

namespace {

constinit std::atomic<const void*> runtimes[64]{};
constinit std::atomic<bool> said{false};

// The version in the file name of a shared runtime's library; null for any other module.
const char* runtime_version(const Dl_info& module) {
    constexpr char kName[] = "libcudart.so.";
    if (!module.dli_fname)
        return nullptr;
    const char* slash = std::strrchr(module.dli_fname, '/');
    const char* file = slash ? slash + 1 : module.dli_fname;
    return std::strncmp(file, kName, sizeof(kName) - 1) == 0 ? file + sizeof(kName) - 1 : nullptr;
}

// The program itself: the only module without a name.
bool is_program(const Dl_info& module) {
    Dl_info info{};
    link_map* map = nullptr;
    return Libdl::dladdr1(module.dli_fbase, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) && map &&
           (!map->l_name || !*map->l_name);
}

// The version that the runtime shim gives its symbols; null: it has none for this runtime.
const char* version_of_shim(const char* version) {
    if (!version)
        return nullptr;
    if (std::strncmp(version, "11", 2) == 0)
        return "libcudart.so.11.0";
    if (std::strncmp(version, "12", 2) == 0)
        return "libcudart.so.12";
    return std::strncmp(version, "13", 2) == 0 ? "libcudart.so.13" : nullptr;
}

// The loader takes the first of several: the runtime itself has the program's calls where it stands before its shim.
bool stands_before_shim(const Dl_info& module, const char* version) {
    void* const first = Libdl::dlvsym(RTLD_DEFAULT, "cudaSetDevice", version);
    Dl_info found{};
    return first && Libdl::dladdr(first, &found) && found.dli_fbase == module.dli_fbase;
}

// Why a runtime has its program's own calls to itself; null where they come to the shim. A runtime inside a library
// works on what is current, and needs no shim.
const char* why_without_shim(const Dl_info& module) {
    const char* const version = runtime_version(module);
    const char* const of_shim = version_of_shim(version);
    if (of_shim && !cuslice_runtime_12)
        return ": libcuslice-runtime.so has to be in LD_PRELOAD, too, as cuslice run puts it there";
    if (of_shim)
        return stands_before_shim(module, of_shim) ? ": libcuslice-runtime.so has to stand before it in LD_PRELOAD"
                                                   : nullptr;
    if (version)
        return ", as it is not the shared one of CUDA 11, 12 or 13 (docs/virtual-gpus.md)";
    if (!is_program(module))
        return nullptr;
    return ", as it is not the shared one of CUDA 11, 12 or 13. Start the program with cuslice run "
           "--redirect-runtime=program, or relink it with nvcc -cudart shared: NVCC_APPEND_FLAGS=\"-cudart shared\" "
           "make";
}

void say_once(const Dl_info& module) {
    const char* const why = why_without_shim(module);
    if (!why || said.exchange(true))
        return;
    LogLine line;
    line.append("the CUDA runtime in ", module.dli_fname);
    line.append(" sees each split GPU as one, with the memory of its first partition", why);
    log_line(LogLevel::warn, line);
}

// The virtual GPU that a physical one stands for, in this thread.
CUdevice to_part(CUdevice physical) { return to_virtual(physical); }

bool to_part(CUmemLocation& location) {
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        location.id = to_part(location.id);
    return location.type != CU_MEM_LOCATION_TYPE_DEVICE || location.id >= 0;
}

CUcontext real_of(CUcontext handle) { return virtual_contexts().resolve(handle).real; }

CUdevice physical_of(int ordinal) {
    const Split::Device* device = split().device(ordinal);
    return device ? device->physical : ordinal;
}

// References that runtimes hold to a physical GPU's context, counted for the partition that their thread was on.
constinit std::atomic<unsigned> retained[VirtualParts::kMax]{};

int retained_part(CUdevice physical) {
    const auto give_up = [&](int part) {
        const Split::Device* device = split().device(part);
        unsigned count = device && device->physical == physical ? retained[part].load(std::memory_order_relaxed) : 0;
        while (count && !retained[part].compare_exchange_weak(count, count - 1, std::memory_order_relaxed)) {
        }
        return count != 0;
    };
    const int here = to_part(physical);
    if (give_up(here))
        return here;
    for (int i = 0; i < split().count(); i++)
        if (give_up(i))
            return i;
    return here;  // none: the driver says so
}

// The hooks, each with physical GPUs in its arguments and answers. Those that make contexts have no such form: the
// runtime makes none.
namespace seen {

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    const int part = to_part(device);
    const CUresult result = ::cuDevicePrimaryCtxRetain(context, part);
    if (result != CUDA_SUCCESS)
        return result;
    retained[part].fetch_add(1, std::memory_order_relaxed);
    *context = real_of(*context);
    return result;
}
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
    return ::cuDevicePrimaryCtxRelease(retained_part(device));
}
CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    return ::cuDevicePrimaryCtxRelease_v2(retained_part(device));
}
CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
    const int part = to_part(device);
    return reset_by_runtime(part, ::cuDevicePrimaryCtxReset(part));
}
CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device) {
    const int part = to_part(device);
    return reset_by_runtime(part, ::cuDevicePrimaryCtxReset_v2(part));
}
CUresult CUDAAPI cuDeviceTotalMem(unsigned* bytes, CUdevice device) {
    return ::cuDeviceTotalMem(bytes, to_part(device));
}
CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    return ::cuDeviceTotalMem_v2(bytes, to_part(device));
}

CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc resources, CUdevice device, unsigned flags) {
    return ::cuGreenCtxCreate(green, resources, to_part(device), flags);
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* wish,
                             unsigned long long flags) {
    if (!wish)
        return ::cuMemCreate(handle, bytes, wish, flags);
    CUmemAllocationProp ours = *wish;
    return to_part(ours.location) ? ::cuMemCreate(handle, bytes, &ours, flags) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* wish) {
    if (!wish)
        return ::cuMemPoolCreate(pool, wish);
    CUmemPoolProps ours = *wish;
    return to_part(ours.location) ? ::cuMemPoolCreate(pool, &ours) : CUDA_ERROR_INVALID_DEVICE;
}

// Not hooks, but each part's own all the same.
CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
    return CUSLICE_REAL(cuDeviceGetDefaultMemPool)(pool, to_part(device));
}
CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
    return CUSLICE_REAL(cuDeviceGetMemPool)(pool, to_part(device));
}
CUresult CUDAAPI cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    return CUSLICE_REAL(cuDeviceSetMemPool)(to_part(device), pool);
}
CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
    return CUSLICE_REAL(cuDevicePrimaryCtxSetFlags)(to_part(device), flags);
}
CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    return CUSLICE_REAL(cuDevicePrimaryCtxSetFlags_v2)(to_part(device), flags);
}

void correct(CUpointer_attribute attribute, void* data) {
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
        auto& ordinal = *static_cast<int*>(data);
        if (ordinal >= 0)
            ordinal = physical_of(ordinal);
    } else if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT) {
        auto& context = *static_cast<CUcontext*>(data);
        if (context)
            context = real_of(context);
    }
}

CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
    const CUresult result = ::cuPointerGetAttribute(data, attribute, address);
    if (result == CUDA_SUCCESS && data)
        correct(attribute, data);
    return result;
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                        CUdeviceptr address) {
    const CUresult result = ::cuPointerGetAttributes(count, attributes, data, address);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++)
        if (data[i])
            correct(attributes[i], data[i]);
    return result;
}

}  // namespace seen

struct Form {
    Function function;
    void* address;
};
#define CUSLICE_SEEN(symbol) \
    { Function::symbol, reinterpret_cast<void*>(static_cast<decltype(&::symbol)>(&seen::symbol)) }
const Form kForms[] = {
    CUSLICE_SEEN(cuDevicePrimaryCtxRetain),
    CUSLICE_SEEN(cuDevicePrimaryCtxRelease),
    CUSLICE_SEEN(cuDevicePrimaryCtxRelease_v2),
    CUSLICE_SEEN(cuDevicePrimaryCtxReset),
    CUSLICE_SEEN(cuDevicePrimaryCtxReset_v2),
    CUSLICE_SEEN(cuDeviceTotalMem),
    CUSLICE_SEEN(cuDeviceTotalMem_v2),
    CUSLICE_SEEN(cuGreenCtxCreate),
    CUSLICE_SEEN(cuMemCreate),
    CUSLICE_SEEN(cuMemPoolCreate),
    CUSLICE_SEEN(cuDeviceGetDefaultMemPool),
    CUSLICE_SEEN(cuDeviceGetMemPool),
    CUSLICE_SEEN(cuDeviceSetMemPool),
    CUSLICE_SEEN(cuDevicePrimaryCtxSetFlags),
    CUSLICE_SEEN(cuDevicePrimaryCtxSetFlags_v2),
    CUSLICE_SEEN(cuPointerGetAttribute),
    CUSLICE_SEEN(cuPointerGetAttributes),
};
#undef CUSLICE_SEEN

// A stream is a part's, whoever makes it, and so is an event.
constexpr Function kOfPartsForAll[] = {
    Function::cuStreamCreate,         Function::cuStreamCreateWithPriority,
    Function::cuGreenCtxStreamCreate, Function::cuEventCreate,
    Function::cuEventDestroy,         Function::cuEventDestroy_v2,
    Function::cuEventElapsedTime,     Function::cuEventElapsedTime_v2,
};

}  // namespace

// Runtimes from 12 on begin with the empty name and version 0. One of 11 begins with the name of the function that it
// asks through, as programs do, too: that one is known by its library's name.
bool is_runtime(const void* caller, const char* name, int version) {
    if (!split().installed() || !name)
        return false;
    Dl_info module{};
    if (!Libdl::dladdr(caller, &module))
        return false;
    const bool is_old = std::strcmp(name, "cuGetProcAddress") == 0 && runtime_version(module);
    for (std::atomic<const void*>& known : runtimes) {
        const void* there = known.load(std::memory_order_acquire);
        if (there == module.dli_fbase)
            return true;
        if (there)
            continue;
        if (!is_old && (*name || version != 0))
            return false;
        if (!known.compare_exchange_strong(there, module.dli_fbase) && there != module.dli_fbase)
            continue;
        say_once(module);
        return true;
    }
    return false;
}

CUresult reset_by_runtime(int part, CUresult result) {
    if (result == CUDA_SUCCESS && split().device(part))
        virtual_contexts().expect_use(virtual_contexts().primary(part));
    return result;
}

void* runtime_form(const void* real, void* hook) {
    for (const Form& form : kForms)
        if (physical_slot(form.function) == real)
            return form.address;
    for (const Function function : kOfPartsForAll)
        if (physical_slot(function) == real)
            return hook;
    // Contexts and GPUs as the driver has them, where no hook counts anything.
    for (size_t i = 0; i < kFunctionCount; i++)
        if (split_from_slots[i] == real && filled_driver_slot(i) == hook)
            return split_from_slots[i];
    return hook;
}

}  // namespace cuslice
