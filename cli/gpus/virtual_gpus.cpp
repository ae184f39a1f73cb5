// SPDX-License-Identifier: Apache-2.0
#include "cli/gpus/virtual_gpus.h"

#include <algorithm>

#include "config/handover.h"
#include "config/load.h"
#include "config/resolve.h"
#include "config/split/identity.h"

namespace cuslice::cli {
namespace {

std::string_view view_of(const std::optional<std::string>& text) {
    return text ? std::string_view(*text) : std::string_view();
}

std::vector<std::string> items_of(const std::string& list) {
    std::vector<std::string> items;
    for (size_t at = 0; at < list.size();) {
        const size_t comma = std::min(list.find(',', at), list.size());
        items.push_back(list.substr(at, comma - at));
        at = comma + 1;
    }
    return items;
}

// One that the driver doesn't list (a MIG device) is brought up by its name.
std::optional<Gpu> find_gpu(Machine& machine, const std::string& uuid) {
    for (const Gpu& gpu : machine.all().list)
        if (gpu.uuid == uuid)
            return gpu;
    return machine.unlisted(uuid);
}

// "0=1GiB+rest", as it is written.
std::string text_of(const Entry& entry) {
    const bool general = entry.selector.kind == GpuSelector::Kind::every;
    return (general ? "" : std::string(entry.selector.text) + "=") + std::string(entry.value);
}

}  // namespace

VirtualGpus::VirtualGpus(const Settings& settings, Environment& environment)
    : settings_(settings), physical_(environment) {
    const auto chosen = environment.get(kChosenVariable), handed_on = environment.get(kHandOver);
    auto outer = std::make_unique<Settings>();
    ConfigError unused;
    if (chosen && handed_on && read_handover(*outer, *handed_on, HandOverPart::all, unused) && splits_any(*outer)) {
        const auto visible = environment.get(kCudaVisible);
        const std::string_view own = own_list(*chosen, view_of(visible));
        if (own.data() != nullptr)
            own_ = std::string(own);
        outer_settings_ = std::move(outer);
        chosen_ = *chosen;
        physical_.set(kCudaVisible, chosen_);
        return;
    }
    settle_visible(environment);
    physical_ = environment;
}

bool VirtualGpus::split(const Settings& settings, const std::vector<Gpu>& gpus, Planned& planned, ConfigError& error) {
    planned = {gpus, {}, {}, {}};
    std::vector<uint64_t> totals;
    for (const Gpu& gpu : gpus) {
        planned.physical.push_back(identity_of(gpu, gpu.ordinal));
        totals.push_back(gpu.host_memory ? 0 : gpu.total);
    }
    if (!plan_split(settings, planned.physical, totals, planned.parts, error))
        return false;
    for (const VirtualPart& part : planned.parts.view())
        planned.identities.push_back(identity_of_virtual(part, planned.physical));
    return true;
}

void VirtualGpus::look_outside(Machine& machine) {
    if (!outer_settings_ || !machine.all().failure.empty())
        return;
    std::vector<Gpu> gpus;
    for (const std::string& uuid : items_of(chosen_))
        if (const auto gpu = find_gpu(machine, uuid))
            gpus.push_back(*gpu);
    ConfigError unused;
    if (!split(*outer_settings_, gpus, outer_, unused) || !own_)
        return;
    seen_ = visible_parts(outer_.identities, outer_.parts, *own_);
    GpuPlaces behind;
    for (const VirtualPart& part : seen_->view())
        behind.add(part.gpu);
    VisibleText list;
    for (const uint8_t place : behind.view())
        append_visible(list, outer_.gpus[place].uuid);
    physical_.set(kCudaVisible, list);
    machine.narrow(list);
}

// A file that both launchers read says the same twice, and an option may say it again.
bool VirtualGpus::refuse_second_split(ConfigError& error) const {
    for (const GpuIdentity& gpu : outer_.physical) {
        const Entry* const outer = find(*outer_settings_, Key::split, gpu);
        const Entry* const inner = find(settings_, Key::split, gpu);
        if (outer == nullptr || outer->number == 1 || (inner != nullptr && inner->value == outer->value))
            continue;
        Reason why;
        append_gpu(gpu, "GPU ", why);
        why.append(" is split already by an outer cuslice run (").append(text_of(*outer)).append(" by ");
        why.append(outer->origin).append("), and a partition can't be split again: ");
        if (inner == nullptr) {
            why.append("that setting isn't found here any more, so say it as --split");
            return error.set("split", why);
        }
        why.append("leave it out here, or say it there");
        return error.set(inner->origin, text_of(*inner), why);
    }
    return true;
}

bool VirtualGpus::plan(Machine& machine, Selection& selection, ConfigError& error) {
    if (outer_settings_ && !refuse_second_split(error))
        return false;
    selection.split = splits_any(settings_);
    if (!selection.split || selection.how == Selection::How::open)
        return true;
    if (selection.how == Selection::How::untouched) {
        if (!machine.all().failure.empty())
            return true;
        selection.gpus = outer_settings_ ? outer_.gpus : machine.in_order();
    }
    known_ = true;
    Planned planned;
    if (selection.how != Selection::How::any)
        return split(settings_, selection.gpus, planned, error);
    std::erase_if(selection.gpus, [&](const Gpu& gpu) { return !split(settings_, {gpu}, planned, error); });
    return !selection.gpus.empty();
}

// The inner launcher's names for the outer one's visible virtual GPUs, in the same order: a part keeps its number,
// and a GPU that was whole becomes all that it is now.
std::string VirtualGpus::carry_on(const Planned& inner) const {
    VisibleText list;
    for (const VirtualPart& outer : seen_->view())
        for (size_t i = 0; i < inner.identities.size(); ++i) {
            const VirtualPart& part = inner.parts.view()[i];
            const bool same_gpu = inner.gpus[part.gpu].uuid == outer_.gpus[outer.gpu].uuid;
            if (same_gpu && (!outer.split || part.part == outer.part))
                append_visible(list, inner.identities[i].uuid);
        }
    return std::string(list);
}

void VirtualGpus::show(Environment& environment, const Selection& selection) const {
    if (!selection.split || selection.how == Selection::How::open)
        return show_selection(environment, selection);
    if (!known_ || selection.how == Selection::How::any)
        return;
    Planned planned;
    ConfigError unused;
    environment.set(kChosenVariable, list_of(selection.gpus));
    if (seen_ && split(settings_, selection.gpus, planned, unused)) {
        environment.set(kCudaVisible, carry_on(planned));
    } else {
        environment.unset(kCudaVisible);
    }
}

std::optional<VirtualGpus::Behind> VirtualGpus::behind(const Selection& selection, const std::string& uuid) const {
    Planned planned;
    ConfigError unused;
    if (!selection.split || !split(settings_, selection.gpus, planned, unused))
        return std::nullopt;
    for (size_t i = 0; i < planned.identities.size(); ++i)
        if (const VirtualPart& part = planned.parts.view()[i]; planned.identities[i].uuid == uuid)
            return Behind{planned.gpus[part.gpu], part};
    return std::nullopt;
}

}  // namespace cuslice::cli
