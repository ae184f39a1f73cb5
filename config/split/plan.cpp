// SPDX-License-Identifier: Apache-2.0
#include "config/split/plan.h"

#include "config/resolve.h"
#include "config/size.h"
#include "config/visible.h"

namespace cuslice {
namespace {

// One GPU that is to be split.
struct Task {
    const Entry& entry;
    const GpuIdentity& gpu;
    Amount slice;
    uint8_t place;
    bool oversubscribe;
};

bool refuse_plan(const Task& task, const Reason& why, ConfigError& error) {
    FixedText<160> value;
    if (!task.entry.selector.is_general())
        value.append(task.entry.selector.text, "=");
    value.append(task.entry.value);
    return error.set(task.entry.origin, value, why);
}

Reason& append_name(const GpuIdentity& gpu, Reason& why) {
    if (gpu.index < 0)
        return why.append(gpu.uuid[0] != '\0' ? gpu.uuid : "the GPU");
    return why.append("GPU ", gpu.index);
}

// "the 2048.0 MiB of GPU 0", and by what it has no more.
Reason& append_slice(const Task& task, Reason& why) {
    append_name(task.gpu, why.append("the ", format_size(task.slice.bytes), " of "));
    if (task.slice.limited)
        why.append(" (", task.slice.origin, ")");
    return why;
}

// "--split 0=2", as it could be written instead.
Reason& append_equal(const Task& task, uint64_t parts, Reason& why) {
    why.append("--split ");
    if (!task.entry.selector.is_general())
        why.append(task.entry.selector.text, "=");
    return why.append(parts);
}

// The parts of a GPU in the order of the program's, with the places that are written.
class Ordered {
  public:
    bool add(const VirtualPart& part, unsigned place) {
        if (count_ == VirtualParts::kMax)
            return false;
        size_t at = count_++;
        for (; at > 0 && places_[at - 1] > place; --at) {
            parts_[at] = parts_[at - 1];
            places_[at] = places_[at - 1];
        }
        parts_[at] = part;
        places_[at] = place;
        return true;
    }
    std::span<const VirtualPart> view() const { return {parts_, count_}; }

  private:
    VirtualPart parts_[VirtualParts::kMax];
    unsigned places_[VirtualParts::kMax];
    size_t count_ = 0;
};

bool split_equally(const Task& task, WrittenSplit& written, ConfigError& error) {
    const uint64_t each = task.slice.bytes / written.equal / kEqualPartStep * kEqualPartStep;
    written.count = written.equal;
    for (size_t i = 0; i < written.count; ++i)
        written.parts[i].bytes = each;
    if (each >= kMinPart)
        return true;
    Reason why;
    append_slice(task, why.append(written.equal, " partitions of "));
    why.append(" have ", format_size(each), " each: a partition has at least 64MiB");
    const uint64_t most = task.slice.bytes / kMinPart;
    if (most > 1)
        why.append("; at most ", most, " partitions");
    return refuse_plan(task, why, error);
}

// `sum`: of the parts that have a size.
bool refuse_sum(const Task& task, const WrittenSplit& written, uint64_t sum, ConfigError& error) {
    bool each_fits = true;
    for (size_t i = 0; i < written.count; ++i)
        each_fits = each_fits && written.parts[i].bytes <= task.slice.bytes;
    Reason why;
    why.append(format_size(sum), written.has_rest() ? " and a rest are more than " : " are more than ");
    append_slice(task, why);
    append_equal(task, written.count, why.append("; "))
        .append(written.count == 1 ? " leaves it whole" : " gives equal partitions");
    // Alone it can't have more, and where there is to be a rest the others have to leave one.
    if (!written.has_rest() && written.count != 1 && !task.oversubscribe) {
        why.append(", and --oversubscribe allows ", each_fits ? "it" : "partitions of up to ");
        if (!each_fits)
            why.append(format_size(task.slice.bytes), " each");
    }
    return refuse_plan(task, why, error);
}

bool split_by_size(const Task& task, WrittenSplit& written, ConfigError& error) {
    const uint64_t slice = task.slice.bytes;
    uint64_t sum = 0, largest = 0;
    for (size_t i = 0; i < written.count; ++i) {
        const uint64_t bytes = written.parts[i].bytes;
        sum = sum > ~bytes ? ~0ull : sum + bytes;
        if (bytes > largest)
            largest = bytes;
    }
    if (task.oversubscribe && largest > slice)
        return refuse_sum(task, written, largest, error);
    if (sum > slice && (written.has_rest() || !task.oversubscribe))
        return refuse_sum(task, written, sum, error);
    for (size_t i = 0; i < written.count; ++i) {
        if (!written.parts[i].rest)
            continue;
        written.parts[i].bytes = slice - sum;
        if (slice - sum >= kMinPart)
            continue;
        Reason why;
        why.append("the rest of ");
        append_slice(task, why).append(" is ", format_size(slice - sum));
        return refuse_plan(task, why.append(": a partition has at least 64MiB"), error);
    }
    return true;
}

std::optional<uint8_t> number_of(const WrittenPart& part) {
    if (part.number == kNoNumber)
        return std::nullopt;
    return static_cast<uint8_t>(part.number);
}

bool add_parts(const Task& task, const WrittenSplit& written, Ordered& ordered, ConfigError& error) {
    for (size_t i = 0; i < written.count; ++i) {
        const VirtualPart part{task.place,
                               static_cast<uint8_t>(i),
                               static_cast<uint8_t>(written.count),
                               true,
                               written.parts[i].bytes,
                               written.plus_context || task.slice.plus_context,
                               written.parts[i].priority,
                               number_of(written.parts[i])};
        const unsigned place = written.parts[i].place;
        if (ordered.add(part, place))
            continue;
        Reason why;
        return refuse_plan(task, why.append("more than 64 virtual GPUs in all"), error);
    }
    return true;
}

// Some GPU's parts have places in the order, and this one's have none, or the other way round.
bool refuse_order(const Task& task, bool has_places, const GpuIdentity& other, ConfigError& error) {
    Reason why;
    append_name(task.gpu, why)
        .append(has_places ? "'s partitions have places in the order, and those of "
                           : "'s partitions have no places in the order, and those of ");
    append_name(other, why).append(has_places ? " have none: all need them, or none" : " have: all need them, or none");
    return refuse_plan(task, why, error);
}

}  // namespace

bool VirtualParts::add(const VirtualPart& part) {
    if (count_ == kMax)
        return false;
    parts_[count_++] = part;
    return true;
}

bool splits_any(const Settings& settings) {
    constexpr uint64_t kWhole = 1;
    for (const Entry& entry : settings.entries())
        if (entry.key == Key::split && entry.number != kWhole && !is_hidden(settings, entry))
            return true;
    return false;
}

bool plan_split(const Settings& settings, std::span<const GpuIdentity> gpus, std::span<const uint64_t> totals,
                VirtualParts& parts, ConfigError& error) {
    parts = VirtualParts();
    const Entry* oversubscribe = find(settings, Key::oversubscribe);
    Ordered ordered;
    const GpuIdentity* first = nullptr;  // of those that are split
    bool has_places = false;
    for (size_t i = 0; i < gpus.size() && i < VirtualParts::kMax; ++i) {
        const auto place = static_cast<uint8_t>(i);
        const Entry* entry = find(settings, Key::split, gpus[i]);
        if (entry == nullptr || entry->number == 1) {
            if (ordered.add({.gpu = place}, kNoPlace))
                continue;
            return error.set("cuslice", "more than 64 virtual GPUs in all");
        }
        const Task task{*entry, gpus[i], amount_for(settings, gpus[i], totals[i]), place,
                        oversubscribe != nullptr && oversubscribe->number != 0};
        WrittenSplit written;
        Reason why;
        if (is_mig_uuid(gpus[i].uuid)) {
            why.assign("a MIG instance can't be split: make smaller instances of its GPU");
            return refuse_plan(task, why, error);
        }
        if (totals[i] == 0) {
            append_name(gpus[i], why)
                .append("'s memory is the host's, whose size NVML doesn't report: it can't be split");
            return refuse_plan(task, why, error);
        }
        if (!read_split(entry->value, written, why))
            return refuse_plan(task, why, error);
        if (first != nullptr && has_places != written.has_places())
            return refuse_order(task, written.has_places(), *first, error);
        if (first == nullptr)
            has_places = written.has_places();
        if (first == nullptr)
            first = &gpus[i];
        if (written.equal != 0 && written.plus_context) {
            why.assign("equal partitions are of the limit: write --split ", written.equal);
            why.append(" and --limit SIZE+context");
            return refuse_plan(task, why, error);
        }
        const bool fits =
            written.equal != 0 ? split_equally(task, written, error) : split_by_size(task, written, error);
        if (!fits || !add_parts(task, written, ordered, error))
            return false;
    }
    for (const VirtualPart& part : ordered.view())
        parts.add(part);
    return true;
}

VirtualParts visible_parts(std::span<const GpuIdentity> identities, const VirtualParts& parts,
                           std::string_view cuda_visible_devices) {
    VirtualParts visible;
    const GpuPlaces places = read_cuda_list(cuda_visible_devices, identities);
    for (const uint8_t place : places.view())
        if (place < parts.view().size())
            visible.add(parts.view()[place]);
    return visible;
}

}  // namespace cuslice
