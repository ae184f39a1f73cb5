// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

#include "policy/budget/allocation_table.h"
#include "policy/budget/in_flight.h"
#include "virtual_gpu/gpu/cache_of_unseen.h"
#include "virtual_gpu/gpu/contexts.h"
#include "virtual_gpu/gpu/graph_needs.h"
#include "virtual_gpu/gpu/lowered_limit.h"
#include "virtual_gpu/gpu/managed_pools.h"
#include "virtual_gpu/gpu/memory_reclaimer.h"
#include "virtual_gpu/gpu/physical_memory.h"
#include "virtual_gpu/gpu/sharing.h"
#include "virtual_gpu/gpu/visits.h"

namespace cuslice {

// This process's state on all its GPUs: contexts, allocations, and operations under way. There is one, as with the
// driver's own tables; it is never destroyed: threads may still call while the program ends. Each part is
// thread-safe.
struct GpuState {
    static constexpr int kMaxGpus = 64;

    AllocationTable allocations;
    InFlight frees;  // frees that the driver may have carried out and the budgets don't show yet
    Contexts contexts;
    std::atomic<unsigned> contexts_being_made{0};  // by calls that were caught, and not in `contexts` yet
    Visits visits;
    PhysicalMemory physical_memory;
    ManagedPools managed_pools;
    GraphNeeds graph_needs;
    SharingPlan sharing;                    // which accounts the settings name
    LoweredLimit lowered_limits[kMaxGpus];  // by ordinal

    // Services that GPUs ask of the process. Set before the first GPU is opened.
    MemoryReclaimer* reclaimer = nullptr;
    // Loads and initialises NVML, where that was not done. False if there is none, or not now.
    bool (*start_nvml)() = nullptr;
    // A primary context may have ended where no hook was, and what was in it with it: looked for before anything is
    // refused.
    void (*look_for_ended)(VirtualGpu& gpu) = nullptr;
    // A context may be there that no hook has seen begin, and that isn't current where memory is asked for: it is
    // charged before the first byte is granted. False if the GPU has no context yet, so that it is to be asked again.
    bool (*charge_unseen)(VirtualGpu& gpu, CacheOfUnseen cache) = [](VirtualGpu&, CacheOfUnseen) { return true; };
};

// Every hook asks for it several times, so it is no call.
extern constinit GpuState the_gpu_state;
inline GpuState& gpu_state() { return the_gpu_state; }

// Stands around a call that makes a context, until that is in GpuState::contexts.
class MakingContext {
  public:
    MakingContext() { gpu_state().contexts_being_made.fetch_add(1); }
    ~MakingContext() { gpu_state().contexts_being_made.fetch_sub(1); }
    MakingContext(const MakingContext&) = delete;
    MakingContext& operator=(const MakingContext&) = delete;
};

}  // namespace cuslice
