// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/budget/budget.h"
#include "policy/budget/limit_error.h"
#include "virtual_gpu/gpu/physical_gpu.h"
#include "virtual_gpu/gpu/sharing.h"

namespace cuslice {

/// Memory that members of accounts have given back to the driver, and are charged with until they call again. Each says
/// in the accounts when nothing of its own is in flight; then the others may compare its charge with NVML's figure of
/// it (ledger/holdings.h), and count the difference as free. Sizes are in bytes. A view of what it is made of.
/// Thread-safe.
class GivenBack {
  public:
    /// `sharing`, `budget` and `process_limit`: of this GPU or partition. `start_nvml`: loads and initialises NVML;
    /// false if there is none.
    GivenBack(GpuSharing& sharing, PhysicalGpu& physical, Budget& budget, uint64_t process_limit, bool (*start_nvml)())
        : sharing_(sharing),
          physical_(physical),
          budget_(budget),
          process_limit_(process_limit),
          start_nvml_(start_nvml) {}

    /// Reserves `bytes` in the budget, where the accounts count as free what their other members have given back. Asks
    /// NVML: no lock may be held.
    bool reserve(uint64_t bytes, LimitError* why);
    /// True if no limit is exceeded without that. Asks NVML: no lock may be held.
    bool within_limit();

    /// Something has been given back that the charge doesn't show before the next poll of the footprint: if nothing is
    /// in flight now, the others are told that the charge can be compared.
    void publish_settled();
    /// An operation begins that reserves nothing, as it takes what is charged already: it can't.
    void publish_unsettled();

  private:
    void publish_settled_of_all();

    GpuSharing& sharing_;
    PhysicalGpu& physical_;
    Budget& budget_;
    uint64_t process_limit_;
    bool (*start_nvml_)();
};

}  // namespace cuslice
