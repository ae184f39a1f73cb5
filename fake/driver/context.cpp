// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/context.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "fake/driver/architecture.h"
#include "fake/driver/time_client.h"

namespace cuslice::fake {

thread_local constinit CUcontext current_handle = nullptr;

namespace {

constexpr size_t kLeastStack = 1024;  // bytes a thread, which every context has

using Stack = std::vector<CUcontext>;
thread_local constinit Stack* stack_below = nullptr;  // what lies under current_handle

/// Frees the stack when its thread ends. A thread_local with a destructor would be checked at every access.
Stack& stack() {
    static const pthread_key_t key = [] {
        pthread_key_t made{};
        pthread_key_create(&made, [](void* old) { delete static_cast<Stack*>(old); });
        return made;
    }();
    if (stack_below == nullptr) {
        stack_below = new Stack;
        pthread_setspecific(key, stack_below);
    }
    return *stack_below;
}

std::atomic<uint32_t> last_number{0};

}  // namespace

void push_context(CUcontext handle) {
    if (current_handle != nullptr)
        stack().push_back(current_handle);
    current_handle = handle;
}

CUcontext pop_context() {
    const CUcontext top = std::exchange(current_handle, nullptr);
    if (top != nullptr && stack_below != nullptr && !stack_below->empty()) {
        current_handle = stack_below->back();
        stack_below->pop_back();
    }
    return top;
}

unsigned stack_depth() {
    const size_t below = stack_below != nullptr ? stack_below->size() : 0;
    return static_cast<unsigned>(below) + (current_handle != nullptr ? 1 : 0);
}

void set_context(CUcontext handle) {
    if (handle == nullptr) {
        pop_context();
    } else {
        current_handle = handle;
    }
}

uint64_t thread_bytes(const Gpu& gpu, size_t per_thread) {
    const int threads = architecture_of(gpu.spec).threads_per_multiprocessor;
    return per_thread <= kLeastStack ? 0 : (per_thread - kLeastStack) * threads * gpu.spec.multiprocessors;
}

uint64_t thread_bytes(const Context& context) {
    return thread_bytes(*context.gpu, std::max(context.limits.at(CU_LIMIT_STACK_SIZE), context.local_bytes));
}

CUresult create_context(Gpu& gpu, unsigned flags, bool primary, Context*& context) {
    if (gpu.lost)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    CUSLICE_TRY(gpu.open());
    if (!gpu.charge(gpu.spec.context))
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu.books.note_contexts(static_cast<int64_t>(gpu.spec.context), 1);
    if (context == nullptr) {
        const auto [handle, made] = contexts.create();
        made->gpu = &gpu;
        made->handle = handle;
        made->primary = primary;
        context = made;
    }
    context->number = ++last_number;
    context->flags = flags;
    context->active = true;
    context->fault = CUDA_SUCCESS;
    context->local_bytes = 0;
    if (time_client != nullptr)
        context->time = time_client->open_context(gpu.spec);
    context->limits = {{CU_LIMIT_STACK_SIZE, kLeastStack},
                       {CU_LIMIT_PRINTF_FIFO_SIZE, size_t{1} << 20},
                       {CU_LIMIT_MALLOC_HEAP_SIZE, size_t{8} << 20},
                       {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
                       {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
                       {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
                       {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}};
    return CUDA_SUCCESS;
}

Context& create_name(Context& base, CUgreenCtx green) {
    const auto [handle, name] = contexts.create();
    name->gpu = base.gpu;
    name->handle = handle;
    name->number = ++last_number;
    name->base = &base;
    name->green = green;
    return *name;
}

}  // namespace cuslice::fake
