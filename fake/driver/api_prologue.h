#pragma once
// What every function begins with: whether it may be called, and injected failures. While nothing is in the way it is
// one load and one branch.

#include <atomic>

#include "fake/driver/cuda_api.h"
#include "fake/driver/gate.h"

namespace cuslice::fake {

/// The slow half of the gate. `anytime`: the function works before cuInit too.
CUresult pass_gate(const char* name, bool anytime);

/// Answers for a function that this driver does not have: says its name once, returns CUDA_ERROR_NOT_SUPPORTED.
CUresult unsupported(const char* name, std::atomic<bool>& said);

}  // namespace cuslice::fake

/// First statement of every entry; its function's own name.
#define CUSLICE_ENTER(name)                                                                             \
    if (::cuslice::fake::gate.load(std::memory_order_relaxed) != 0) [[unlikely]] {                      \
        if (const CUresult refused = ::cuslice::fake::pass_gate(#name, false); refused != CUDA_SUCCESS) \
            return refused;                                                                             \
    }

/// The same for a function that works before cuInit.
#define CUSLICE_ENTER_ANYTIME(name)                                                                                    \
    if (::cuslice::fake::gate.load(std::memory_order_relaxed) != 0) [[unlikely]] {                                     \
        if (const CUresult refused = ::cuslice::fake::pass_gate(#name, true); refused != CUDA_SUCCESS) return refused; \
    }

/// Answers an argument or a flag that this driver's form of a function does not have.
#define CUSLICE_UNSUPPORTED(what)                           \
    do {                                                    \
        static std::atomic<bool> said_it{false};            \
        return ::cuslice::fake::unsupported(what, said_it); \
    } while (false)
