// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exported memory of cuMemCreate: which process NVML lists with it, from its making to its last descriptor. An H200
// (driver 580.159.04, 2026-11-27) lists nobody once its maker has released it; what was not asked there is asked here.
#include <sys/types.h>

namespace cuslice::check {

struct Gpu;

/// A process that makes memory, hands it out and ends. It has to begin before CUDA is initialised.
class Maker {
  public:
    Maker();
    ~Maker();
    Maker(const Maker&) = delete;
    Maker& operator=(const Maker&) = delete;
    /// Makes and exports the memory. Its descriptor, or -1.
    int make() const;
    /// Ends without having released it.
    void end();

  private:
    pid_t pid_ = -1;
    int socket_ = -1;
};

/// Rows of Markdown, `question | answer`.
void ask_exported(const Gpu& gpu, Maker& maker);

}  // namespace cuslice::check
