// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels of a fixed amount of work, which note when they ran by the GPU's own clock.
#include <cstdint>
#include <vector>

#include "lab/hardware/driver.h"

namespace cuslice::check {

/// In the current context. Throughout, one stream at a time.
class Spin {
  public:
    Spin();
    ~Spin();
    Spin(const Spin&) = delete;
    Spin& operator=(const Spin&) = delete;

    /// The length of kernels that are launched, and of graphs that are made, from now on.
    void set_steps(uint64_t steps) { arguments_.steps = steps; }

    void launch(CUstream stream);
    /// A graph of so many kernels, one after the other.
    CUgraphExec graph(int kernels);

    /// Nothing of it may be running, here and below.
    void forget();
    /// For how long its kernels ran at a time, without the last time, which may not be over. Empty where kernels are
    /// skipped.
    std::vector<double> turns_ms() const;

  private:
    struct Arguments {
        CUdeviceptr notes = 0;
        uint64_t steps = 1;
        uint64_t pause = 0;
        uint32_t most = 0;
        void* addresses[4] = {&notes, &steps, &pause, &most};
    };

    CUmodule module_;
    CUfunction kernel_;
    Arguments arguments_;
};

}  // namespace cuslice::check
