// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/given_back.h"

#include "policy/base/cancellation.h"
#include "policy/ledger/process_identity.h"
#include "virtual_gpu/nvml/nvml_gpu.h"
#include "virtual_gpu/nvml/own_pid.h"

namespace cuslice {

namespace {

// NVML's figures of the processes in this one's pid namespace. False where NVML lists them by other numbers.
bool open_figures(const char* uuid, bool (*start_nvml)(), NvmlGpu* nvml, ledger::Figures* figures) {
    if (!start_nvml() || !nvml->open(uuid))
        return false;
    const PidFacts facts = pid_facts();
    if (pid_in_nvml(facts) != facts.own)
        return false;
    figures->self = nvml;
    figures->pid_namespace = ledger::own_pid_namespace();
    figures->read = [](void* self, int32_t pid, uint64_t* bytes) {
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

[[gnu::cold]] bool GivenBack::reserve(uint64_t bytes, LimitError* why) {
    NvmlGpu nvml;
    ledger::Figures figures;
    return sharing_.joined() && open_figures(physical_.identity().uuid, start_nvml_, &nvml, &figures) &&
           budget_.reserve_given_back(bytes, figures, why);
}

[[gnu::cold]] bool GivenBack::within_limit() {
    NvmlGpu nvml;
    ledger::Figures figures;
    if (!sharing_.joined() || budget_.used() > process_limit_)
        return false;
    return open_figures(physical_.identity().uuid, start_nvml_, &nvml, &figures) &&
           sharing_.budget().within_given_back(figures);
}

// Managed memory is charged wherever it is: less on the GPU doesn't mean that it was given back. Nor does less in
// NVML's figure, where others keep what was exported. A context that is being made is charged before it is there.
[[gnu::cold]] void GivenBack::publish_settled() {
    if (!sharing_.joined())
        return;
    const DisableCancellation locked;
    const Budget::Snapshot now = budget_.snapshot();
    const SharedBudget::Operations operations = sharing_.budget().operations();
    const bool settled = physical_.figure_has_all() && budget_.settled(now);
    settled ? sharing_.budget().settled_after(operations) : sharing_.budget().not_settled();
    if (physical_.is_split())
        publish_settled_of_all();
}

// The same of all partitions together, in the GPU's accounts.
void GivenBack::publish_settled_of_all() {
    SharedBudget& all = physical_.sharing().budget();
    const std::span<const DriverFootprint::Share> shares = physical_.shares();
    Budget::Snapshot now[PhysicalGpu::kMaxParts];
    for (size_t i = 0; i < shares.size(); i++)
        now[i] = shares[i].budget->snapshot();
    const SharedBudget::Operations operations = all.operations();
    bool settled = physical_.figure_has_all();
    for (size_t i = 0; i < shares.size(); i++)
        settled = settled && shares[i].budget->settled(now[i]);
    settled ? all.settled_after(operations) : all.not_settled();
}

[[gnu::cold]] void GivenBack::publish_unsettled() {
    if (!sharing_.joined())
        return;
    sharing_.budget().not_settled();
    if (physical_.is_split())
        physical_.sharing().budget().not_settled();
}

}  // namespace cuslice
