// SPDX-License-Identifier: Apache-2.0
#include "cli/gpus/context_room.h"

#include <algorithm>

#include "cli/gpus/slice_room.h"
#include "cli/text/report.h"
#include "config/resolve.h"
#include "config/size.h"
#include "policy/budget/headroom.h"

namespace cuslice::cli {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// Bytes that a program needs before it can allocate anything.
struct Need {
    uint64_t context, least;
};

Need need_of(const Settings& settings, const GpuIdentity& gpu, uint64_t context) {
    const uint64_t headroom = headroom_for(settings, gpu).value_or(derived_headroom(context));
    return {context, ((context + headroom) / kMiB + 1) * kMiB};
}

std::string text_of(uint64_t bytes) { return std::string(format_size(bytes)); }

std::string name_of(const Gpu& gpu) { return gpu.ordinal < 0 ? gpu.uuid : "GPU " + std::to_string(gpu.ordinal); }

// "GPU 0: a context takes 520.0 MiB, and needs a limit of at least 586MiB with its headroom; ".
std::string beginning(const Gpu& gpu, const Need& need, const char* what) {
    return name_of(gpu) + ": a context takes " + text_of(need.context) + ", and needs " + what + " of at least " +
           std::to_string(need.least / kMiB) + "MiB with its headroom; ";
}

void look_at_limit(const Settings& settings, const Gpu& gpu, const GpuIdentity& identity, const Need& need) {
    const Amount amount = amount_for(settings, identity, gpu.total);
    if (!amount.limited || amount.plus_context || amount.bytes >= need.least)
        return;
    warn(beginning(gpu, need, "a limit") + std::string(amount.origin) + " gives " + text_of(amount.bytes) +
         (amount.bytes < need.context
              ? ", so nothing can be allocated; a context that the CUDA runtime makes takes its " +
                    text_of(need.context) + " all the same"
              : ", so nothing else can be allocated"));
}

void look_at_parts(const Settings& settings, const Gpu& gpu, const GpuIdentity& identity, const Need& need) {
    VirtualParts parts;
    ConfigError unused;
    if (!plan_split(settings, {&identity, 1}, {&gpu.total, 1}, parts, unused))
        return;
    // Each part has to have room for its share.
    uint64_t together = 0;
    bool fits = true;
    for (const VirtualPart& part : parts.view()) {
        const Need share = need_of(settings, identity, share_of_context(need.context, part, parts));
        fits = fits && (!part.split || part.plus_context || part.bytes >= share.least);
        together += part.bytes;
    }
    if (fits)
        return;
    warn(beginning(gpu, need, "partitions") + "its " + std::to_string(parts.view().size()) + " partitions have " +
         text_of(together) + " together, so no program can use them");
}

}  // namespace

void warn_too_small(const Settings& settings, const ContextSizes& contexts, Machine& machine,
                    const Selection& selection) {
    const bool decided = selection.how == Selection::How::untouched || selection.how == Selection::How::listed;
    const auto entries = settings.entries();
    const bool limited =
        std::any_of(entries.begin(), entries.end(), [](const Entry& entry) { return is_amount(entry.key); });
    if (contexts.empty() || !decided || (!limited && !selection.split))
        return;
    const bool chosen = selection.split || selection.how == Selection::How::listed;
    for (const Gpu& gpu : chosen ? selection.gpus : machine.allowed()) {
        const auto context = contexts.find(gpu.uuid);
        if (context == contexts.end())
            continue;
        const GpuIdentity identity = identity_of(gpu, gpu.ordinal);
        const Need need = need_of(settings, identity, context->second);
        const Entry* const split = find(settings, Key::split, identity);
        const bool whole = !selection.split || split == nullptr || split->number == 1;
        whole ? look_at_limit(settings, gpu, identity, need) : look_at_parts(settings, gpu, identity, need);
    }
}

// Files and variables are written once for machines of several sizes; an option is meant for this one.
void warn_too_large(const Settings& settings, const Machine& machine, const Selection& selection) {
    if (selection.split)
        return;
    const bool listed = selection.how == Selection::How::listed;
    for (const Gpu& gpu : listed ? std::span<const Gpu>(selection.gpus) : machine.known()) {
        const Entry* const limit = find(settings, Key::limit, identity_of(gpu, gpu.ordinal));
        const bool option = limit != nullptr && limit->key == Key::limit && limit->rank == Rank{Source::flag, 0};
        if (!option || gpu.total == 0 || limit->number <= gpu.total)
            continue;
        warn(std::string(limit->origin) + ": " + std::string(limit->value) + ": " + name_of(gpu) + " has only " +
             text_of(gpu.total) + ", and the program may use all of it");
        return;
    }
}

}  // namespace cuslice::cli
