// SPDX-License-Identifier: Apache-2.0
// Flags, limits and preferences of the current context.

#include "fake/driver/api_prologue.h"
#include "fake/driver/capture.h"
#include "fake/driver/context.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

constexpr size_t kMostStack = 512 << 10;  // bytes a thread: as much local memory as a thread can have

/// The current context, checked together with the place for the answer.
CUresult context_and(const void* out, Context*& context) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return current_context(context);
}

template <typename Value>
CUresult give(Value* out, Value Context::*member) {
    CUSLICE_FIND(Context, context, context_and(out, context));
    *out = context->*member;
    return CUDA_SUCCESS;
}

template <typename Value>
CUresult prefer(Value value, Value last, Value Context::*member) {
    if (static_cast<unsigned>(value) > static_cast<unsigned>(last))
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    context->*member = value;
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_ENTRY(cuCtxGetFlags, flags) { return give(flags, &Context::flags); }

CUSLICE_ENTRY(cuCtxSetFlags, flags) {
    if ((flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    context->flags = flags;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuCtxGetLimit, value, limit) {
    CUSLICE_FIND(Context, context, context_and(value, context));
    const DriverLock hold;
    const auto found = context->limits.find(limit);
    if (found == context->limits.end())
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = found->second;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuCtxSetLimit, limit, value) {
    CUSLICE_FIND_CURRENT(context);
    CUSLICE_TRY(refuse_unsafe());
    const DriverLock hold;
    const auto found = context->limits.find(limit);
    if (found == context->limits.end())
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (limit == CU_LIMIT_STACK_SIZE) {
        if (value > kMostStack)
            return CUDA_ERROR_INVALID_VALUE;
        Gpu& gpu = *context->gpu;
        const uint64_t before = thread_bytes(*context), now = thread_bytes(gpu, value);
        if (now > before && !gpu.charge(now - before))
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (now < before)
            gpu.release(before - now);
        context->local_bytes = 0;
    }
    found->second = value;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuCtxGetCacheConfig, config) { return give(config, &Context::cache_config); }

CUSLICE_ENTRY(cuCtxSetCacheConfig, config) {
    return prefer(config, CU_FUNC_CACHE_PREFER_EQUAL, &Context::cache_config);
}

CUSLICE_ENTRY(cuCtxGetSharedMemConfig, config) { return give(config, &Context::shared_config); }

CUSLICE_ENTRY(cuCtxSetSharedMemConfig, config) {
    return prefer(config, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE, &Context::shared_config);
}

CUSLICE_ENTRY(cuCtxGetStreamPriorityRange, least, greatest) {
    CUSLICE_FIND_CURRENT(context);
    if (least != nullptr)
        *least = 0;
    if (greatest != nullptr)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuCtxGetExecAffinity, affinity, type) {
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    CUSLICE_FIND(Context, context, context_and(affinity, context));
    affinity->type = type;
    affinity->param.smCount.val = static_cast<unsigned>(context->gpu->spec.multiprocessors);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuCtxResetPersistingL2Cache) {
    Context* context = nullptr;
    return current_context(context);  // there is no cache to reset
}
