// SPDX-License-Identifier: Apache-2.0
#pragma once
// Contexts, and which one is current in each thread.

#include <atomic>
#include <cstdint>
#include <map>
#include <set>

#include "fake/driver/find.h"
#include "fake/driver/gpu.h"
#include "fake/driver/handles.h"

namespace cuslice::fake {

struct Context {
    Gpu* gpu = nullptr;
    CUcontext handle = nullptr;
    uint32_t number = 0;  // owner of its blocks; never used twice
    unsigned flags = 0;
    unsigned api_version = 3020;  // 3010 for the oldest form of cuCtxCreate
    bool primary = false;
    bool active = true;  // a primary context keeps its handle while it is reset
    unsigned attached = 1;
    std::map<int, size_t> limits;
    size_t local_bytes = 0;  // a thread's: the most that a kernel has had here since the stack's limit was set
    CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
    CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
    std::set<CUcontext> peers;                  // contexts whose memory it may touch
    std::atomic<CUresult> fault{CUDA_SUCCESS};  // of work that has failed (work_fault.h)
    uint32_t time = 0;                          // its number at the timekeeper's, where work takes time
    // Set if this is a green context's CUcontext: another name of the primary context, with streams of its own.
    Context* base = nullptr;
    CUgreenCtx green = nullptr;
};

inline constinit HandleTable<Context, CUcontext, HandleKind::Context> contexts;

/// The thread's current context as a handle; null if there is none. It may have been destroyed by another thread.
extern thread_local constinit CUcontext current_handle;

/// A live context behind a handle from the program, null if it has ended. For a green context's handle that is its own
/// name, not the primary context.
inline Context* live_name(CUcontext handle) {
    Context* context = contexts.find(handle);
    return context != nullptr && context->active ? context : nullptr;
}

/// A live context behind a handle from the program, or null. Behind a green context's that is the primary context.
inline Context* live_context(CUcontext handle) {
    Context* context = live_name(handle);
    return context != nullptr && context->base != nullptr ? context->base : context;
}

/// The thread's current context: CUDA_ERROR_INVALID_CONTEXT if there is none, CUDA_ERROR_CONTEXT_IS_DESTROYED if it is
/// gone.
inline CUresult current_context(Context*& context) {
    if (current_handle == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    context = live_context(current_handle);
    return context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/// Bytes beside those of every context that are held for kernels' stacks and local memory, of so many bytes a thread:
/// room for as many threads as can be resident on the GPU. An H200's driver takes it as soon as the stack's limit is
/// set, and at the first launch of a kernel whose local memory is larger than that and all before it.
uint64_t thread_bytes(const Gpu& gpu, size_t per_thread);
/// The same for what a context has set and launched.
uint64_t thread_bytes(const Context& context);

/// Makes a context and charges it; not current anywhere. The driver's lock is held.
CUresult create_context(Gpu& gpu, unsigned flags, bool primary, Context*& context);
/// Another name of a primary context, for a green one. The driver's lock is held.
Context& create_name(Context& base, CUgreenCtx green);

/// The thread's stack: the top is the current context.
void push_context(CUcontext handle);
/// Takes the top off and returns it; null if the stack is empty.
CUcontext pop_context();
/// How many are on it.
unsigned stack_depth();
/// Replaces the top; null takes it off.
void set_context(CUcontext handle);

}  // namespace cuslice::fake

/// Declares a pointer to the thread's current context, or returns why there is none: CUSLICE_FIND_CURRENT(context);
#define CUSLICE_FIND_CURRENT(name) CUSLICE_FIND(::cuslice::fake::Context, name, ::cuslice::fake::current_context(name))
