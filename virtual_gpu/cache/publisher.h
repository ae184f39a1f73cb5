// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

#include "policy/stats/file.h"

namespace cuslice {

class VirtualGpu;

// Writes what the caches hold into this process's file of figures, for `cuslice stats`. Thread-safe; holds no lock.
class Publisher {
  public:
    // Makes the file, the first time; without one nothing is written.
    void open(const char* folder);
    // Why there is none. Null, if there is one or it was not asked for yet; and from the second time on.
    const stats::LedgerError* failure();

    // Source of a GPU's figures: the contents of its caches, and the number of contexts that hold anything.
    struct Source {
        const void* self;
        Statistics (*read)(const void* self, const VirtualGpu& gpu, unsigned* contexts);
    };
    // The figures of this GPU's caches have changed.
    void changed(const Source& caches, const VirtualGpu& gpu);

    /// At the end of the process: removes the file's name. What other threads still write goes into the mapping.
    void remove(const char* folder) const;

    // In a forked child: the file is the parent's.
    void forget();

  private:
    void write(stats::Gpu& into, const Source& caches, const VirtualGpu& gpu);

    std::atomic<stats::File*> file_{nullptr};
    std::atomic<bool> tried_{false}, failed_{false}, told_{false};
    std::atomic<unsigned> pending_[stats::kGpus]{};  // changes since somebody began to write them down
    stats::LedgerError failure_;                     // published by failed_
};

}  // namespace cuslice
