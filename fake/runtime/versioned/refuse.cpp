// SPDX-License-Identifier: Apache-2.0
#include "fake/runtime/versioned/refuse.h"

#include <atomic>
#include <cstddef>

#include "fake/runtime/report.h"
#include "fake/runtime/state.h"

namespace {

// Newer runtimes have some dozens of functions more.
constexpr size_t kMost = 512;
std::atomic<const char*> named[kMost];

// True from the second time on, of a name's own place. Beyond kMost every time is the first.
bool was_said(const char* name) {
    for (std::atomic<const char*>& one : named) {
        const char* known = nullptr;
        if (one.compare_exchange_strong(known, name))
            return false;
        if (known == name)
            return true;
    }
    return false;
}

}  // namespace

int cuslice_lacks(const char* name) { return cuslice::fake::refuse(name, was_said(name)); }

int cuslice::fake::refuse(const char* name, bool said) {
    if (!said) {
        log_line("fake CUDA runtime %d: %s is not supported; it fails with cudaErrorNotSupported (801)",
                 CUSLICE_CUDART_VERSION / 1000, name);
    }
    return record(cudaErrorNotSupported);
}
