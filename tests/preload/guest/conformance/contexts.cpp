// SPDX-License-Identifier: Apache-2.0
// Contexts that a program makes, and which is current.
#include "tests/preload/guest/conformance/report.h"

namespace conformance {
namespace {

void current() {
    CUcontext now = nullptr;
    CUdevice where = -1;
    ASK(cuCtxGetCurrent, (&now), named(now));
    ASK(cuCtxGetDevice, (&where), device(where));
}

void asked(CUcontext context) {
    CUdevice where = -1;
    unsigned version = 0;
    unsigned long long id = 0, again = 0;
    ASK(cuCtxGetDevice_v2, (&where, context), device(where));
    ASK(cuCtxGetApiVersion, (context, &version), number(version));
    ASK(cuCtxGetId, (context, &id), id ? "a number" : "0");
    ASK(cuCtxGetId, (context, &again), again == id ? "the same" : "another");
    ASK(cuCtxSynchronize_v2, (context));
}

template <typename Call>
void all_creates(const char* name, Call create) {
    CUcontext context = nullptr;
    for (const CUdevice ordinal : {0, 1, 2, -1}) {
        const Scope of(device(ordinal));
        if (say(name, "()", create(&context, 0, ordinal), [&] { return Words{as("made", context)}; }))
            continue;
        current();
        asked(context);
        ASK(cuCtxDestroy_v2, (context));
        current();
    }
    for (const unsigned flags : {1u, 2u, 4u, 3u, 5u, 8u, 16u, 32u, 64u, 128u, 256u, 0x1000u, ~0u}) {
        const Scope with("flags " + std::to_string(flags));
        unsigned now = 0;
        if (say(name, "()", create(&context, flags, 1), [&] { return Words{as("made", context)}; }))
            continue;
        ASK(cuCtxGetFlags, (&now), number(now));
        ASK(cuCtxDestroy_v2, (context));
    }
    say(name, "(null)", create(nullptr, 0, 1), [] { return Words{}; });
    current();
}

}  // namespace

void contexts() {
    start();
    CUcontext a = nullptr, b = nullptr, c = nullptr, gone = nullptr;
    CUdevice where = -1;
    unsigned version = 0;
    unsigned long long id = 0, other = 0;
    {
        const Scope scope("none yet");
        current();
        asked(nullptr);
        ASK(cuCtxSynchronize, ());
        ASK(cuCtxPopCurrent_v2, (&a));
        ASK(cuCtxSetCurrent, (nullptr));
        ASK(cuCtxDestroy_v2, (nullptr));
        ASK(cuCtxPushCurrent_v2, (nullptr));
        current();
    }
    all_creates("cuCtxCreate", [](CUcontext* to, unsigned flags, CUdevice on) { return cuCtxCreate(to, flags, on); });
    all_creates("cuCtxCreate_v2",
                [](CUcontext* to, unsigned flags, CUdevice on) { return cuCtxCreate_v2(to, flags, on); });
    all_creates("cuCtxCreate_v3",
                [](CUcontext* to, unsigned flags, CUdevice on) { return cuCtxCreate_v3(to, nullptr, 0, flags, on); });
    all_creates("cuCtxCreate_v4",
                [](CUcontext* to, unsigned flags, CUdevice on) { return cuCtxCreate_v4(to, nullptr, flags, on); });
    CUexecAffinityParam share{};
    share.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
    share.param.smCount.val = 2;
    CUctxCreateParams parameters{};
    ASK(cuCtxCreate_v3, (&a, &share, 1, 0, 1));
    ASK(cuCtxCreate_v3, (&a, nullptr, 1, 0, 1));
    ASK(cuCtxCreate_v3, (&a, nullptr, -1, 0, 1));
    ASK(cuCtxCreate_v4, (&gone, &parameters, 0, 1), as("gone", gone));
    ASK(cuCtxDestroy_v2, (gone));
    parameters.execAffinityParams = &share;
    parameters.numExecAffinityParams = 1;
    ASK(cuCtxCreate_v4, (&a, &parameters, 0, 1));

    const Scope scope("several");
    ASK(cuCtxCreate_v2, (&a, 0, 0), as("A", a));
    ASK(cuCtxCreate_v2, (&b, CU_CTX_SCHED_YIELD, 1), as("B", b));
    ASK(cuCtxCreate_v2, (&c, CU_CTX_SCHED_SPIN, 1), as("C", c));
    current();
    for (const CUcontext context : {a, b, c, CUcontext{nullptr}}) {
        const Scope of(named(context));
        asked(context);
        ASK(cuCtxSetCurrent, (context));
        current();
    }
    ASK(cuCtxGetId, (b, &id), "a number");
    ASK(cuCtxGetId, (c, &other), other == id ? "the same" : "another");
    ASK(cuCtxSetCurrent, (b));
    ASK(cuCtxGetId, (nullptr, &other), other == id ? "the same" : "another");
    ASK(cuCtxGetId, (b, nullptr));
    ASK(cuCtxGetApiVersion, (b, nullptr));
    ASK(cuCtxGetDevice_v2, (nullptr, b));
    ASK(cuCtxGetCurrent, (nullptr));
    ASK(cuCtxGetDevice, (nullptr));
    ASK(cuCtxDestroy_v2, (c));
    current();
    {
        const Scope ended("C is destroyed");
        asked(c);
        ASK(cuCtxSetCurrent, (c));
        ASK(cuCtxPushCurrent_v2, (c));
        ASK(cuCtxDestroy_v2, (c));
        ASK(cuCtxDestroy, (c));
        current();
    }
    ASK(cuCtxDestroy, (b));
    current();
    ASK(cuCtxSetCurrent, (a));
    current();
    const auto made_up = reinterpret_cast<CUcontext>(0x1234560);
    {
        const Scope never("never a context");
        ASK(cuCtxSetCurrent, (made_up));
        ASK(cuCtxPushCurrent_v2, (made_up));
        ASK(cuCtxGetDevice_v2, (&where, made_up), device(where));
        ASK(cuCtxGetApiVersion, (made_up, &version), number(version));
        ASK(cuCtxGetId, (made_up, &id), "a number");
        ASK(cuCtxSynchronize_v2, (made_up));
        ASK(cuCtxDestroy_v2, (made_up));
        current();
    }
    ASK(cuCtxDestroy_v2, (a));
    current();
}

void stacks() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr, a = nullptr, b = nullptr, popped = nullptr;
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    current();
    ASK(cuCtxCreate_v2, (&a, 0, 1), as("A", a));
    ASK(cuCtxCreate_v2, (&b, 0, 0), as("B", b));
    current();
    // Deeper than anybody keeps at hand.
    for (int i = 0; i < 24; i++) {
        const CUcontext next = i % 4 == 0 ? p0 : i % 4 == 1 ? p1 : i % 4 == 2 ? a : b;
        ASK(cuCtxPushCurrent_v2, (next), named(next));
        current();
    }
    ASK(cuCtxSetCurrent, (p1));
    for (int i = 0; i < 20; i++) {
        ASK(cuCtxPopCurrent_v2, (&popped), named(popped));
        current();
    }
    ASK(cuCtxPopCurrent_v2, (nullptr));
    ASK(cuCtxPopCurrent, (&popped), named(popped));
    ASK(cuCtxPushCurrent, (a), "");
    current();
    {
        const Scope scope("beneath another");
        ASK(cuCtxPushCurrent_v2, (p0));
        ASK(cuCtxDestroy_v2, (a));
        current();
        ASK(cuCtxPopCurrent_v2, (&popped), named(popped));
        ASK(cuCtxGetCurrent, (&popped), popped == a ? "A still" : named(popped));
        ASK(cuCtxSynchronize, ());
        ASK(cuCtxSetCurrent, (p1));
    }
    current();
    {
        const Scope scope("none pushed over");
        ASK(cuCtxSetCurrent, (nullptr));
        current();
        ASK(cuCtxPushCurrent_v2, (p1));
        current();
        ASK(cuCtxPopCurrent_v2, (&popped), named(popped));
        current();
        ASK(cuCtxPopCurrent_v2, (&popped), named(popped));
        current();
    }
    ASK(cuCtxDestroy_v2, (b));
    ASK(cuDevicePrimaryCtxRelease_v2, (0));
    ASK(cuDevicePrimaryCtxRelease_v2, (1));
}

void attaching() {
    start();
    CUcontext a = nullptr, b = nullptr, got = nullptr, primary = nullptr;
    ASK(cuCtxAttach, (&got, 0));
    ASK(cuCtxDetach, (nullptr));
    ASK(cuCtxCreate_v2, (&a, 0, 0), as("A", a));
    ASK(cuCtxCreate_v2, (&b, 0, 1), as("B", b));
    ASK(cuCtxAttach, (&got, 0), named(got));
    ASK(cuCtxAttach, (nullptr, 0));
    ASK(cuCtxAttach, (&got, 1));
    current();
    // A is not the current context.
    ASK(cuCtxDetach, (a));
    ASK(cuCtxDetach, (b));
    current();
    ASK(cuCtxDetach, (b));
    current();
    ASK(cuCtxDetach, (b));
    ASK(cuCtxSetCurrent, (b));
    current();
    ASK(cuCtxSetCurrent, (a));
    ASK(cuCtxAttach, (&got, 0), named(got));
    // However often it is attached.
    ASK(cuCtxDestroy_v2, (a));
    current();
    ASK(cuCtxSetCurrent, (a));
    ASK(cuDevicePrimaryCtxRetain, (&primary, 1), as("P1", primary));
    ASK(cuCtxSetCurrent, (primary));
    ASK(cuCtxAttach, (&got, 0), named(got));
    ASK(cuCtxDetach, (primary));
    ASK(cuCtxDestroy_v2, (primary));
    current();
    ASK(cuDevicePrimaryCtxRelease_v2, (1));
}

void settings() {
    start();
    CUcontext a = nullptr, b = nullptr;
    unsigned flags = 0;
    CUfunc_cache cache{};
    CUsharedconfig shared{};
    size_t limit = 0;
    int least = 0, greatest = 0;
    CUexecAffinityParam share{};
    ASK(cuCtxGetFlags, (&flags));
    ASK(cuCtxSetFlags, (0));
    ASK(cuCtxGetCacheConfig, (&cache));
    ASK(cuCtxCreate_v2, (&a, CU_CTX_SCHED_SPIN | CU_CTX_MAP_HOST, 0), as("A", a));
    ASK(cuCtxCreate_v2, (&b, CU_CTX_SCHED_BLOCKING_SYNC | CU_CTX_LMEM_RESIZE_TO_MAX, 1), as("B", b));
    for (int round = 0; round < 2; round++) {
        for (const CUcontext context : {a, b}) {
            const Scope scope(named(context));
            cuCtxSetCurrent(context);
            ASK(cuCtxGetFlags, (&flags), number(flags));
            ASK(cuCtxGetFlags, (nullptr));
            ASK(cuCtxGetCacheConfig, (&cache), number(cache));
            ASK(cuCtxGetSharedMemConfig, (&shared), number(shared));
            ASK(cuCtxGetStreamPriorityRange, (&least, &greatest), number(least), number(greatest));
            ASK(cuCtxGetExecAffinity, (&share, CU_EXEC_AFFINITY_TYPE_SM_COUNT), number(share.param.smCount.val));
            for (const auto which : {CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE})
                ASK(cuCtxGetLimit, (&limit, which), number(static_cast<long long>(limit)));
        }
        // On B alone: A keeps what it had.
        ASK(cuCtxSetFlags, (CU_CTX_SCHED_YIELD));
        ASK(cuCtxSetFlags, (0x4000));
        ASK(cuCtxSetCacheConfig, (CU_FUNC_CACHE_PREFER_L1));
        ASK(cuCtxSetSharedMemConfig, (CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
        ASK(cuCtxSetLimit, (CU_LIMIT_STACK_SIZE, 4096));
        ASK(cuCtxSetLimit, (CU_LIMIT_PRINTF_FIFO_SIZE, 2 << 20));
        ASK(cuCtxResetPersistingL2Cache, ());
    }
    ASK(cuCtxDestroy_v2, (a));
    ASK(cuCtxDestroy_v2, (b));
}

}  // namespace conformance
