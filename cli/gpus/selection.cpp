// SPDX-License-Identifier: Apache-2.0
#include "cli/gpus/selection.h"

#include <algorithm>

#include "config/resolve.h"
#include "config/visible.h"

namespace cuslice::cli {
namespace {

std::string_view view_of(const std::optional<std::string>& text) {
    return text ? std::string_view(*text) : std::string_view();
}

// True if an outer launcher has applied `gpus` already. A file that every launcher reads sets it again in a nested
// run: to apply it there would refuse a program that has narrowed its list meanwhile, over GPUs that it gave up
// itself.
bool applied(const Settings& settings, const Entry& gpus, const Environment& environment) {
    if (!environment.get(kChosenVariable))
        return false;
    if (gpus.rank.source == Source::user_file || gpus.rank.source == Source::system_file)
        return true;
    for (const Entry& entry : settings.entries()) {
        if (entry.key == Key::gpus && entry.rank.level != 0 && entry.rank.source == gpus.rank.source &&
            entry.value == gpus.value && entry.origin == gpus.origin)
            return true;
    }
    return false;
}

// All that a name can mean: what the driver lists, what the variable brings up besides, and MIG devices that are named.
std::vector<Gpu> known_gpus(Machine& machine, const std::string& value) {
    std::vector<Gpu> known = machine.all().list;
    const auto add = [&](const Gpu& gpu) {
        for (const Gpu& one : known)
            if (one.uuid == gpu.uuid)
                return;
        known.push_back(gpu);
    };
    for (const Gpu& gpu : machine.allowed())
        add(gpu);
    for (size_t at = 0; at < value.size();) {
        const size_t comma = std::min(value.find(',', at), value.size());
        const std::string name = value.substr(at, comma - at);
        const bool listed = std::any_of(known.begin(), known.end(), [&](const Gpu& gpu) {
            return equal_ignoring_case(std::string_view(gpu.uuid).substr(0, name.size()), name);
        });
        if (is_mig_uuid(name) && !listed)
            if (const auto gpu = machine.unlisted(name))
                add(*gpu);
        at = comma + 1;
    }
    return known;
}

}  // namespace

void settle_visible(Environment& environment) {
    const auto chosen = environment.get(kChosenVariable), visible = environment.get(kCudaVisible);
    VisibleText list;
    if (chosen && count_in_chosen(*chosen, view_of(visible), list))
        environment.set(kCudaVisible, list);
}

bool select_gpus(const Settings& settings, const Environment& environment, Machine& machine, Selection& selection,
                 ConfigError& error) {
    selection = {};
    const Entry* gpus = find(settings, Key::gpus);
    if (gpus == nullptr || gpus->value == kAllGpus || applied(settings, *gpus, environment))
        return true;
    selection.how = Selection::How::listed;
    if (names_no_gpu(gpus->value))
        return true;
    if (!machine.all().failure.empty() || machine.all().list.empty()) {
        selection.how = Selection::How::open;
        return true;
    }

    const std::vector<Gpu> known = known_gpus(machine, std::string(gpus->value));
    if (known.size() > GpuPlaces::kMax)
        return error.set(gpus->origin, gpus->value, "at most 64 GPUs can be told apart");
    const auto visible = environment.get(kCudaVisible);
    std::vector<GpuIdentity> identities;
    GpusQuestion question{gpus->origin, gpus->value, {}, {}, view_of(visible)};
    identities.reserve(known.size());
    for (const Gpu& gpu : known)
        identities.push_back(identity_of(gpu, gpu.ordinal));
    question.gpus = identities;
    for (const Gpu& gpu : machine.allowed())
        for (size_t i = 0; i < known.size(); ++i)
            if (known[i].uuid == gpu.uuid)
                question.allowed.add(i);
    // A named MIG device is brought up by its name alone, so without a list it is as good as any that the driver lists.
    if (!visible)
        for (size_t i = 0; i < known.size(); ++i)
            question.allowed.add(i);

    GpuPlaces chosen = question.allowed;
    if (gpus->value == kAnyGpu) {
        selection.how = Selection::How::any;
        if (chosen.view().empty())
            return refuse_any(question, error);
    } else if (!resolve_gpus(question, chosen, error)) {
        return false;
    }
    for (const uint8_t place : chosen.view())
        selection.gpus.push_back(known[place]);
    return true;
}

void select_one(Selection& selection, const Gpu& gpu) {
    const Gpu one = gpu;  // NOLINT(performance-unnecessary-copy-initialization): perhaps among those that go
    selection.gpus = {one};
    selection.how = Selection::How::listed;
}

VisibleText list_of(const std::vector<Gpu>& gpus) {
    VisibleText list;
    for (const Gpu& gpu : gpus)
        append_visible(list, gpu.uuid);
    return list;
}

void show_selection(Environment& environment, const Selection& selection) {
    if (selection.how == Selection::How::listed) {
        const VisibleText list = list_of(selection.gpus);
        environment.set(kCudaVisible, list);
        environment.set(kChosenVariable, list);
    }
    // The library would take an outer launcher's list for the answer to this one's question.
    if (selection.how == Selection::How::open)
        environment.unset(kChosenVariable);
}

}  // namespace cuslice::cli
