// Which context is current, and what can be asked of one.
#include "virtual_gpu/split/current.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/made.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

CUresult set(CUcontext handle) {
    const VirtualContexts::Meaning meaning = virtual_contexts().of(handle);
    return meaning.real || !handle ? CurrentVirtual::set(meaning) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult push(CUcontext handle) {
    const VirtualContexts::Meaning meaning = virtual_contexts().of(handle);
    return meaning.real || !handle ? CurrentVirtual::push(meaning) : CUDA_ERROR_INVALID_CONTEXT;
}

// The same of a named context as of the current one, which no name stands for.
VirtualContexts::Meaning named(CUcontext handle) {
    return handle ? virtual_contexts().of(handle) : CurrentVirtual::get();
}

}  // namespace

namespace split_driver {

CUresult cuCtxSetCurrent(CUcontext context) { return set(context); }
CUresult cuCtxPushCurrent(CUcontext context) { return push(context); }
CUresult cuCtxPushCurrent_v2(CUcontext context) { return push(context); }
CUresult cuCtxPopCurrent(CUcontext* context) { return CurrentVirtual::pop(context); }
CUresult cuCtxPopCurrent_v2(CUcontext* context) { return CurrentVirtual::pop(context); }

CUresult cuCtxGetCurrent(CUcontext* context) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetCurrent)(context);
    if (result == CUDA_SUCCESS && *context) *context = CurrentVirtual::handle();
    return result;
}

CUresult cuCtxGetDevice(CUdevice* device) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetDevice)(device);
    if (result == CUDA_SUCCESS) *device = CurrentVirtual::device();
    return result;
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
    const VirtualContexts::Meaning meaning = named(handle);
    if (handle && !meaning.real) return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetDevice_v2)(device, meaning.real);
    if (result != CUDA_SUCCESS) return result;
    const Maker green = made_things().find(meaning.real, Made::green_context);
    *device = meaning.context ? int{meaning.context->device} : green.known ? green.device : split().first_of(*device);
    return result;
}

CUresult cuCtxGetFlags(unsigned* flags) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetFlags)(flags);
    const VirtualContexts::Meaning now = CurrentVirtual::get();
    // How a thread waits is each context's own; the others are the real one's too.
    if (result == CUDA_SUCCESS && now.context)
        *flags = (*flags & ~static_cast<unsigned>(CU_CTX_SCHED_MASK)) | now.context->flags;
    return result;
}

CUresult cuCtxSetFlags(unsigned flags) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxSetFlags)(flags);
    const VirtualContexts::Meaning now = CurrentVirtual::get();
    if (result == CUDA_SUCCESS && now.context) now.context->flags = flags;
    return result;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
    const VirtualContexts::Meaning meaning = named(handle);
    if (handle && !meaning.real) return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetApiVersion)(meaning.real, version);
    if (result == CUDA_SUCCESS && meaning.context && meaning.context->version) *version = meaning.context->version;
    return result;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
    const VirtualContexts::Meaning meaning = named(handle);
    if (handle && !meaning.real) return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetId)(meaning.real, id);
    // Not the real one's, which has numbers from one up, too.
    constexpr std::uint64_t kOurs = 1ull << 63;
    if (result == CUDA_SUCCESS && meaning.context) *id = kOurs | meaning.context->number;
    return result;
}

}  // namespace split_driver

}  // namespace cuslice
