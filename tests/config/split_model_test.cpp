// SPDX-License-Identifier: Apache-2.0
// Every combination of list, split, order, limit, oversubscription and CUDA_VISIBLE_DEVICES, against a model that says
// the same in the simplest way.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "config/split/identity.h"
#include "config/visible.h"
#include "tests/config/split_gpus.h"

namespace cuslice {
namespace {

std::string uuid_of(unsigned gpu, unsigned part) { return identity_of_part(kGpus[gpu], part).uuid; }

// The model. A split is what was meant, not what was written; its text is made from it.
struct ModelPart {
    uint64_t mib;  // 0: the rest
    int place;     // -1: none
};
struct ModelSplit {
    unsigned equal;  // 0: by sizes, or, without any, not split
    std::vector<ModelPart> sizes;
};

std::string text_of(const ModelSplit& split) {
    if (split.equal != 0)
        return std::to_string(split.equal);
    std::string text;
    for (const ModelPart& part : split.sizes) {
        if (!text.empty())
            text += "+";
        text += part.mib == 0 ? "rest" : std::to_string(part.mib) + "MiB";
        if (part.place >= 0)
            text += "@" + std::to_string(part.place);
    }
    return text;
}

struct ModelDevice {
    unsigned gpu;
    int part;  // -1: whole
    uint64_t mib;
    int place;

    bool operator==(const ModelDevice& other) const {
        return gpu == other.gpu && part == other.part && mib == other.mib;
    }
    std::string uuid() const { return part < 0 ? kGpus[gpu].uuid : uuid_of(gpu, static_cast<unsigned>(part)); }
};
using Devices = std::vector<ModelDevice>;

// Nothing where it is to be refused.
std::optional<Devices> model_parts(unsigned gpu, const ModelSplit& split, uint64_t slice, bool oversubscribe) {
    if (split.equal == 1 || (split.equal == 0 && split.sizes.empty()))
        return Devices{{gpu, -1, 0, -1}};
    Devices devices;
    if (split.equal != 0) {
        uint64_t each = slice / split.equal;
        if (each % 2 == 1)
            --each;
        for (unsigned i = 0; i < split.equal; ++i)
            devices.push_back({gpu, static_cast<int>(i), each, -1});
    } else {
        uint64_t others = 0;
        for (const ModelPart& part : split.sizes)
            others += part.mib;
        for (const ModelPart& part : split.sizes) {
            if (part.mib == 0 && others >= slice)
                return std::nullopt;
            const uint64_t mib = part.mib == 0 ? slice - others : part.mib;
            if (mib > slice)
                return std::nullopt;
            devices.push_back({gpu, static_cast<int>(devices.size()), mib, part.place});
        }
    }
    uint64_t sum = 0;
    for (const ModelDevice& device : devices) {
        if (device.mib < 64)
            return std::nullopt;
        sum += device.mib;
    }
    if (sum > slice && !oversubscribe)
        return std::nullopt;
    return devices;
}

std::optional<Devices> model_plan(const std::vector<unsigned>& list, const std::vector<ModelSplit>& splits,
                                  const std::vector<uint64_t>& slices, bool oversubscribe) {
    Devices split, whole;
    for (const unsigned gpu : list) {
        const auto parts = model_parts(gpu, splits[gpu], slices[gpu], oversubscribe);
        if (!parts)
            return std::nullopt;
        for (const ModelDevice& device : *parts)
            (device.part < 0 ? whole : split).push_back(device);
    }
    const auto placed = std::count_if(split.begin(), split.end(), [](const auto& one) { return one.place >= 0; });
    if (placed != 0 && placed != static_cast<ptrdiff_t>(split.size()))
        return std::nullopt;
    if (placed == 0) {
        // GPU by GPU, as they are listed.
        Devices all;
        for (const unsigned gpu : list)
            for (const Devices& some : {split, whole})
                for (const ModelDevice& device : some)
                    if (device.gpu == gpu)
                        all.push_back(device);
        return all;
    }
    std::stable_sort(split.begin(), split.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
    split.insert(split.end(), whole.begin(), whole.end());
    return split;
}

// An item of CUDA_VISIBLE_DEVICES: an index, or the UUID of what is at that index, or of a physical GPU.
struct ModelItem {
    enum { index, own_uuid, physical_uuid } kind;
    unsigned which;
};

struct ModelVisible {
    std::string text;
    Devices seen;
};

ModelVisible model_visible(const std::vector<ModelItem>& items, const Devices& devices) {
    ModelVisible visible;
    bool ended = false;
    for (const ModelItem& item : items) {
        std::string text = std::to_string(item.which);
        if (item.kind == ModelItem::physical_uuid)
            text = kGpus[item.which].uuid;
        if (item.kind == ModelItem::own_uuid)
            text = item.which < devices.size() ? devices[item.which].uuid() : "GPU-ffffffff";
        visible.text += (visible.text.empty() ? "" : ",") + text;
        const bool same_kind = (item.kind == ModelItem::index) == (items[0].kind == ModelItem::index);
        std::optional<ModelDevice> found;
        for (size_t i = 0; i < devices.size(); ++i) {
            const bool fits = item.kind == ModelItem::index ? i == item.which : devices[i].uuid() == text;
            if (fits)
                found = devices[i];
        }
        ended = ended || !same_kind || !found;
        if (ended)
            continue;
        if (std::find(visible.seen.begin(), visible.seen.end(), *found) != visible.seen.end()) {
            visible.seen.clear();
            ended = true;
            continue;
        }
        visible.seen.push_back(*found);
    }
    return visible;
}

Devices devices_of(const VirtualParts& parts, const std::vector<unsigned>& list) {
    Devices devices;
    for (const VirtualPart& part : parts.view())
        devices.push_back({list[part.gpu], part.split ? part.part : -1, part.bytes / kMiB, -1});
    return devices;
}

std::string show(const Devices& devices) {
    std::string text;
    for (const ModelDevice& device : devices)
        text += " " + std::to_string(device.gpu) + "." + std::to_string(device.part) + ":" + std::to_string(device.mib);
    return text;
}

struct ModelLimit {
    std::string limit, fraction;
    std::vector<uint64_t> slices;
};

// Every combination for the first `count` GPUs; how many were looked at, and how many of them refused.
struct Counts {
    unsigned looked_at = 0, refused = 0;
};

class Combinations {
  public:
    explicit Combinations(unsigned count) : count_(count), splits_(count) {}

    Counts run() {
        each_split(0);
        return counts_;
    }

  private:
    void each_split(unsigned gpu) {
        static const std::vector<ModelSplit> kSplits = {
            {0, {}},
            {1, {}},
            {2, {}},
            {3, {}},
            {0, {{1024, -1}, {0, -1}}},
            {0, {{1024, -1}, {2048, -1}}},
            {0, {{700, 1}, {600, 2}}},
            {0, {{0, 2}, {100, 0}}},
            {0, {{512, 1}, {512, 1}, {2048, 0}}},
        };
        if (gpu == count_)
            return each_list();
        for (const ModelSplit& split : kSplits) {
            splits_[gpu] = split;
            each_split(gpu + 1);
        }
    }

    void each_list() {
        static const std::vector<std::optional<std::string>> kLists = {std::nullopt, "",      "0",       "1",
                                                                       "1,0",        "2,0,1", "GPU-10,1"};
        static const std::vector<std::vector<unsigned>> kPlaces = {{0, 1, 2}, {}, {0}, {1}, {1, 0}, {2, 0, 1}, {0, 1}};
        for (size_t i = 0; i < kLists.size(); ++i) {
            std::vector<unsigned> list = kPlaces[i];
            std::erase_if(list, [&](unsigned gpu) { return !kLists[i] && gpu >= count_; });
            if (std::any_of(list.begin(), list.end(), [&](unsigned gpu) { return gpu >= count_; }))
                continue;
            each_limit(kLists[i], list);
        }
    }

    void each_limit(const std::optional<std::string>& gpus, const std::vector<unsigned>& list) {
        static const std::vector<ModelLimit> kLimits = {{"", "", {3072, 4096, 2002}},
                                                        {"1500MiB", "", {1500, 1500, 1500}},
                                                        {"0=1GiB", "", {1024, 4096, 2002}},
                                                        {"", "50%,0=25%", {768, 2048, 1001}}};
        for (const ModelLimit& limit : kLimits)
            for (const bool oversubscribe : {false, true})
                compare(gpus, list, limit, oversubscribe);
    }

    void compare(const std::optional<std::string>& gpus, const std::vector<unsigned>& list, const ModelLimit& limit,
                 bool oversubscribe) {
        Given given{.limit = limit.limit, .fraction = limit.fraction, .oversubscribe = oversubscribe};
        for (unsigned gpu = 0; gpu < count_; ++gpu) {
            const std::string text = text_of(splits_[gpu]);
            if (text.empty())
                continue;
            given.split += (given.split.empty() ? "" : ",") + std::to_string(gpu) + "=" + text;
        }
        INFO(count_ << " GPUs, gpus " << gpus.value_or("all") << ", split " << given.split << ", limit " << limit.limit
                    << limit.fraction << (oversubscribe ? ", oversubscribe" : ""));
        // The list, as the code reads it.
        const std::span<const GpuIdentity> all(kGpus, count_);
        GpuPlaces chosen = read_cuda_list({}, all);
        ConfigError error;
        if (gpus)
            REQUIRE(resolve_gpus({"--gpus", *gpus, all, chosen, {}}, chosen, error));
        std::vector<GpuIdentity> identities;
        std::vector<uint64_t> totals;
        for (const uint8_t place : chosen.view()) {
            identities.push_back(kGpus[place]);
            totals.push_back(kTotals[place]);
        }
        VirtualParts parts;
        const bool good = plan_split(*settings_of(given), identities, totals, parts, error);
        const auto expected = model_plan(list, splits_, limit.slices, oversubscribe);
        ++counts_.looked_at;
        counts_.refused += !expected;
        INFO(line_of(error).view());
        if (good != expected.has_value())
            FAIL("refused by one of the two");
        if (!good)
            return;
        if (devices_of(parts, list) != *expected)
            FAIL("got" << show(devices_of(parts, list)) << ", expected" << show(*expected));
        compare_visible(parts, *expected, list, identities);
    }

    void compare_visible(const VirtualParts& parts, const Devices& expected, const std::vector<unsigned>& list,
                         const std::vector<GpuIdentity>& gpus) {
        using Item = ModelItem;
        static const std::vector<std::vector<ModelItem>> kVisible = {
            {{Item::index, 0}},
            {{Item::index, 2}, {Item::index, 0}},
            {{Item::index, 1}, {Item::index, 7}, {Item::index, 0}},
            {{Item::index, 0}, {Item::index, 0}},
            {{Item::own_uuid, 1}, {Item::own_uuid, 0}},
            {{Item::own_uuid, 3}, {Item::index, 0}},
            {{Item::index, 1}, {Item::own_uuid, 0}},
            {{Item::physical_uuid, 0}, {Item::own_uuid, 2}},
        };
        std::vector<GpuIdentity> identities;
        for (const VirtualPart& part : parts.view())
            identities.push_back(identity_of_virtual(part, gpus));
        const Devices all = devices_of(visible_parts(identities, parts, {}), list);
        if (all != expected)
            FAIL("without the variable all are visible");
        const VirtualParts none = visible_parts(identities, parts, "");
        CHECK(none.view().empty());
        for (const auto& items : kVisible) {
            const ModelVisible visible = model_visible(items, expected);
            const Devices seen = devices_of(visible_parts(identities, parts, visible.text), list);
            ++counts_.looked_at;
            if (seen != visible.seen)
                FAIL(visible.text << ": got" << show(seen) << ", expected" << show(visible.seen));
        }
    }

    const unsigned count_;
    std::vector<ModelSplit> splits_;
    Counts counts_;
};

}  // namespace

TEST_CASE("list, split, order, limit and the program's own list compose as in the model", "[fuzz]") {
    for (const unsigned count : {2u, 3u}) {
        const Counts counts = Combinations(count).run();
        CHECK(counts.looked_at > 10'000);
        CHECK(counts.refused > 1000);
        CHECK(counts.looked_at - counts.refused > 5000);
    }
}

}  // namespace cuslice
