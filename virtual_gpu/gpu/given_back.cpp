// Memory that other members of the accounts have given back to the driver, and are charged with until they call again.
#include <span>

#include "policy/base/cancellation.h"
#include "policy/ledger/process_identity.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/virtual_gpu.h"
#include "virtual_gpu/nvml/own_pid.h"

namespace cuslice {

namespace {

// NVML's figures of the processes in this one's pid namespace. False where NVML lists them by other numbers.
bool open_figures(const char* uuid, NvmlGpu* nvml, ledger::Figures* figures) {
    if (!gpu_state().start_nvml() || !nvml->open(uuid)) return false;
    const PidFacts facts = pid_facts();
    if (pid_in_nvml(facts) != facts.own) return false;
    figures->self = nvml;
    figures->pid_namespace = ledger::own_pid_namespace();
    figures->read = [](void* self, std::int32_t pid, std::uint64_t* bytes) {
        switch (static_cast<const NvmlGpu*>(self)->used_by_process(static_cast<unsigned>(pid), bytes)) {
            case Reading::ok:
                return ledger::Figures::Answer::known;
            case Reading::absent:
                return ledger::Figures::Answer::absent;
            case Reading::failed:
                break;
        }
        return ledger::Figures::Answer::failed;
    };
    return figures->pid_namespace != 0;
}

}  // namespace

[[gnu::cold]] bool VirtualGpu::reserve_given_back(std::uint64_t bytes, LimitError* why) {
    NvmlGpu nvml;
    ledger::Figures figures;
    return sharing_.joined() && open_figures(physical_->identity().uuid, &nvml, &figures) &&
           budget_.reserve_given_back(bytes, figures, why);
}

[[gnu::cold]] bool VirtualGpu::within_given_back() const {
    NvmlGpu nvml;
    ledger::Figures figures;
    if (!sharing_.joined() || budget_.used() > own_limit()) return false;
    return open_figures(physical_->identity().uuid, &nvml, &figures) && sharing_.budget().within_given_back(figures);
}

bool VirtualGpu::all_within_given_back() const {
    for (const VirtualGpu* part : physical_->parts())
        if (!part->within_limit(nullptr) && !part->within_given_back()) return false;
    const std::uint64_t most = physical_->limit_of_all();
    return !most || physical_->counted_of_all() <= most;
}

// Managed memory is charged wherever it is: less on the GPU doesn't mean that it was given back. Nor does less in
// NVML's figure, where others keep what was exported. A context that is being made is charged before it is there.
[[gnu::cold]] void VirtualGpu::tell_settled_now() {
    const DisableCancellation locked;
    const Budget::Snapshot now = budget_.snapshot();
    const SharedBudget::Operations operations = sharing_.budget().operations();
    const bool figure_has_all = !managed() && !footprint().unlisted().any();
    const bool settled = figure_has_all && !footprint().foresees() && budget_.settled(now);
    settled ? sharing_.budget().settled_after(operations) : sharing_.budget().not_settled();
    if (physical_->is_split()) tell_settled_on_gpu();
}

// The same of all parts together, in the GPU's accounts.
void VirtualGpu::tell_settled_on_gpu() {
    SharedBudget& all = physical_->sharing().budget();
    const std::span<VirtualGpu* const> parts = physical_->parts();
    Budget::Snapshot now[PhysicalGpu::kMaxParts];
    for (std::size_t i = 0; i < parts.size(); i++) now[i] = parts[i]->budget_.snapshot();
    const SharedBudget::Operations operations = all.operations();
    bool settled = !footprint().foresees() && !footprint().unlisted().any();
    for (std::size_t i = 0; i < parts.size(); i++)
        settled = settled && !parts[i]->managed() && parts[i]->budget_.settled(now[i]);
    settled ? all.settled_after(operations) : all.not_settled();
}

[[gnu::cold]] void VirtualGpu::tell_unsettled_now() {
    sharing_.budget().not_settled();
    if (physical_->is_split()) physical_->sharing().budget().not_settled();
}

}  // namespace cuslice
