#pragma once
#include <atomic>

#include "policy/figures/file.h"

namespace cuslice {

class Caches;
class VirtualGpu;

// Writes what the caches hold into this process's file of figures, for `cuslice stats`. Thread-safe; holds no lock.
class Publisher {
  public:
    // Makes the file, the first time; without one nothing is written.
    void open(const char* folder);
    // Why there is none. Null, if there is one or it was not asked for yet; and from the second time on.
    const figures::Failure* failure();

    // The figures of this GPU's caches have changed.
    void changed(Caches& caches, VirtualGpu& gpu);

    // In a forked child: the file is the parent's.
    void forget();

  private:
    void write(figures::Gpu& into, Caches& caches, VirtualGpu& gpu);

    std::atomic<figures::File*> file_{nullptr};
    std::atomic<bool> tried_{false}, told_{false};
    std::atomic<unsigned> pending_[figures::kGpus]{};  // changes since somebody began to write them down
    figures::Failure failure_;
};

}  // namespace cuslice
