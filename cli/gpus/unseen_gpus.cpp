// SPDX-License-Identifier: Apache-2.0
#include "cli/gpus/unseen_gpus.h"

#include <algorithm>

#include "cli/text/report.h"
#include "config/resolve.h"
#include "config/visible.h"

namespace cuslice::cli {
namespace {

bool names_one(const Entry& entry) { return entry.selector.kind != GpuSelector::Kind::every && !entry.ceiling; }

bool matches_any(const Entry& entry, const std::vector<Gpu>& gpus) {
    return std::any_of(gpus.begin(), gpus.end(),
                       [&](const Gpu& gpu) { return entry.selector.matches(identity_of(gpu, gpu.ordinal)); });
}

// "--gpus 1" or "CUDA_VISIBLE_DEVICES=1": what leaves the program fewer GPUs than there are.
void append_cause(const Settings& settings, const Environment& environment, const Selection& selection, Reason& why) {
    const Entry* const gpus = find(settings, Key::gpus);
    const bool by_setting = gpus != nullptr && selection.how != Selection::How::untouched;
    if (by_setting && gpus->value != kAnyGpu) {
        why.append(gpus->origin).append(" ").append(gpus->value.empty() ? "\"\"" : slice(gpus->value, 0, 120));
        return;
    }
    const auto visible = environment.get(kCudaVisible);
    if (!visible) {
        why.append("the driver");
        return;
    }
    why.append(kCudaVisible).append("=").append(visible->empty() ? "\"\"" : slice(*visible, 0, 120));
}

// "1=1GiB", where an index was meant as CUDA counts.
void append_advice(const Entry& entry, const std::vector<Gpu>& seen, Reason& why) {
    const bool counted = entry.selector.kind == GpuSelector::Kind::index;
    const auto place = static_cast<size_t>(entry.selector.index);
    if (!counted || place >= seen.size())
        return;
    Reason name;
    const Gpu& gpu = seen[place];
    if (gpu.ordinal < 0)
        name.append(gpu.uuid);
    if (gpu.ordinal >= 0)
        name.append(gpu.ordinal);
    why.append("; the program's GPU ").append(place).append(" is ").append(name);
    why.append(" here: did you mean ").append(name).append("=").append(entry.value);
}

Reason reason_for(const Settings& settings, const Environment& environment, const Selection& selection,
                  const Entry& entry, const std::vector<Gpu>& seen) {
    Reason why;
    why.append("'").append(entry.selector.text).append("' names a GPU that the program doesn't see: ");
    append_cause(settings, environment, selection, why);
    why.append(seen.empty() ? " leaves it none" : " leaves it ");
    const char* separator = "";
    for (const Gpu& gpu : seen) {
        append_gpu(identity_of(gpu, gpu.ordinal), separator, why);
        separator = ", ";
    }
    append_advice(entry, seen, why);
    return why;
}

}  // namespace

bool check_seen(const Settings& settings, const Environment& environment, Machine& machine, const Selection& selection,
                ConfigError& error) {
    const auto entries = settings.entries();
    if (selection.how == Selection::How::open || std::none_of(entries.begin(), entries.end(), names_one))
        return true;
    const Gpus& all = machine.all();
    if (!all.failure.empty() || all.list.empty())
        return true;
    const bool untouched = selection.how == Selection::How::untouched;
    const std::vector<Gpu>& seen = untouched ? machine.allowed() : selection.gpus;
    for (const Entry& entry : entries) {
        const bool others = entry.rank.source == Source::other_tools;
        // An outer launcher has checked the settings that it hands on, against the GPUs of its own program.
        const bool handed_on = !others && entry.rank.level != 0;
        if (!names_one(entry) || handed_on || matches_any(entry, seen))
            continue;
        if (others && !matches_any(entry, all.list))
            continue;
        ConfigError found;
        refuse_entry(entry, reason_for(settings, environment, selection, entry, seen), found);
        if (!others && !is_file(entry.rank.source)) {
            error = found;
            return false;
        }
        // A file is written for the machine, and names all of its GPUs.
        if (others || log_for(settings).level != LogLevel::warn)
            warn(found);
    }
    return true;
}

void warn_unlimited(const Settings& settings, const Gpu& chosen) {
    const GpuIdentity identity = identity_of(chosen, chosen.ordinal);
    if (amount_for(settings, identity, chosen.total).limited)
        return;
    for (const Entry& entry : settings.entries()) {
        if (!is_amount(entry.key) || !names_one(entry) || entry.rank.level != 0)
            continue;
        Reason gpu;
        append_gpu(identity, "", gpu);
        warn(std::string("no limit on GPU ").append(gpu) + ", which was chosen: " + std::string(entry.origin) +
             " says " + std::string(entry.selector.text) + "=" + std::string(entry.value) +
             ", and nothing sets one for the others; without a GPU, a limit is for every GPU");
        return;
    }
}

}  // namespace cuslice::cli
