// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/context_sizes.h"

#include <iterator>

namespace cuslice::ledger {

namespace {

void keep_fewer(std::atomic<uint64_t>& kept, uint64_t bytes) {
    uint64_t before = kept.load();
    while ((before == 0 || bytes < before) && !kept.compare_exchange_weak(before, bytes)) {
    }
}

}  // namespace

// A size that is read between two looks at its kind is that kind's.
uint64_t least_context(const Header& header, uint64_t kind) {
    for (const ContextSize& size : header.contexts) {
        if (size.kind.load() != kind)
            continue;
        const uint64_t bytes = size.bytes.load();
        if (size.kind.load() == kind)
            return bytes;
    }
    return 0;
}

// A process that is killed here leaves a kind whose size isn't known, or one that is there twice.
void note_context(Header& header, uint64_t kind, uint64_t bytes) {
    for (ContextSize& size : header.contexts)
        if (size.kind.load() == kind)
            return keep_fewer(size.bytes, bytes);
    for (size_t i = std::size(header.contexts) - 1; i > 0; i--) {
        ContextSize& older = header.contexts[i];
        const ContextSize& newer = header.contexts[i - 1];
        older.kind.store(0);
        older.bytes.store(newer.bytes.load());
        older.kind.store(newer.kind.load());
    }
    ContextSize& latest = header.contexts[0];
    latest.kind.store(0);
    latest.bytes.store(bytes);
    latest.kind.store(kind);
}

}  // namespace cuslice::ledger
