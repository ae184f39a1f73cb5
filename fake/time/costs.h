// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long work takes a GPU: kernels as CUSLICE_FAKE_COST says, copies and fills by the GPU's bandwidths.

#include <string>
#include <vector>

#include "fake/spec/gpu_spec.h"
#include "fake/time/model.h"

namespace cuslice::fake {

/// Time of a kernel that no pattern fits, for each wave of its blocks. A model, measured on no GPU.
constexpr Time kWaveTime = 2000;
/// Time of any copy or fill beside that of its bytes. A model, too.
constexpr Time kTransferTime = 2000;

class KernelCosts {
  public:
    /// Reads "gemm*=200us,wait*=until,*=10us/wave": shell patterns of kernels' names, the first that fits counts. A
    /// time is the whole kernel's, or that of each wave: of the blocks that the GPU can run at once. `until`: the
    /// kernel goes on until it is released. False, and why.
    bool parse(const std::string& text, std::string& error);
    /// `blocks` of the grid, of which a multiprocessor can run `blocks_at_once`.
    Work kernel(const std::string& name, uint64_t blocks, uint64_t blocks_at_once, const GpuSpec& gpu) const;

  private:
    struct Cost {
        std::string pattern;
        Time time = 0;
        bool each_wave = false, held = false;
    };
    std::vector<Cost> costs_;
};

/// Copies between host and device run on a copy engine; within a device, and fills, on its multiprocessors.
Work copy_of(Engine engine, uint64_t bytes, const GpuSpec& gpu);
Work fill_of(uint64_t bytes, const GpuSpec& gpu);

}  // namespace cuslice::fake
