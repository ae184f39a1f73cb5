// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table that nvidia-smi prints when it is asked nothing, in the columns of NVIDIA's.

#include <string>
#include <vector>

#include "fake/smi/gpu.h"

namespace cuslice::fake {

std::string table_of(const std::vector<ListedGpu>& gpus, const std::vector<App>& apps);

}  // namespace cuslice::fake
