#include "cli/slice_room.h"

#include <algorithm>

#include "cli/gpu_query.h"
#include "config/resolve.h"
#include "policy/budget/headroom.h"

namespace cuslice::cli {
namespace {

void set_headroom(const Settings& settings, const Gpu& gpu, SliceRoom& room) {
    const std::uint64_t derived = room.plus_context ? 0 : derived_headroom(room.context);
    room.headroom = headroom_for(settings, identity_of(gpu, gpu.ordinal)).value_or(derived);
}

}  // namespace

std::uint64_t share_of_context(std::uint64_t context, std::uint64_t part, std::uint64_t all) {
    const double share = all == 0 ? 1 : static_cast<double>(part) / static_cast<double>(all);
    return static_cast<std::uint64_t>(static_cast<double>(context) * share);
}

std::uint64_t share_of_context(std::uint64_t context, const VirtualPart& part, const VirtualParts& parts) {
    std::uint64_t all = 0;
    for (const VirtualPart& one : parts.view()) all += one.bytes;
    return part.split ? share_of_context(context, part.bytes, all) : context;
}

SliceRoom room_of(const Settings& settings, const ContextSizes& contexts, const Gpu& gpu, std::uint64_t limit) {
    SliceRoom room;
    room.limit = limit;
    const auto known = contexts.find(gpu.uuid);
    room.context_known = known != contexts.end();
    room.context = room.context_known ? known->second : kBelievedContext;
    room.plus_context = amount_for(settings, identity_of(gpu, gpu.ordinal), gpu.total).plus_context;
    set_headroom(settings, gpu, room);
    return room;
}

SliceRoom room_of_part(const Settings& settings, const ContextSizes& contexts, const Gpu& gpu, std::uint64_t limit,
                       std::uint64_t all) {
    SliceRoom room = room_of(settings, contexts, gpu, limit);
    room.context = share_of_context(room.context, limit, all);
    const Entry* const split = find(settings, Key::split, identity_of(gpu, gpu.ordinal));
    room.plus_context = room.plus_context || (split && split->plus_context);
    set_headroom(settings, gpu, room);
    return room;
}

std::vector<SliceRoom> slice_rooms(const Settings& settings, const ContextSizes& contexts,
                                   const std::vector<Gpu>& gpus) {
    std::vector<SliceRoom> rooms;
    for (const Gpu& gpu : gpus) {
        if (gpu.total == 0) continue;
        const GpuIdentity identity = identity_of(gpu, gpu.ordinal);
        const Amount amount = amount_for(settings, identity, gpu.total);
        const auto group = find(settings, Key::group) != nullptr ? group_limit_for(settings, identity) : std::nullopt;
        const std::uint64_t most = std::min(amount.bytes, group.value_or(amount.bytes));
        VirtualParts parts;
        ConfigError unused;
        if (!plan_split(settings, {&identity, 1}, {&gpu.total, 1}, parts, unused)) continue;
        for (const VirtualPart& part : parts.view()) {
            SliceRoom room = room_of(settings, contexts, gpu, part.split ? std::min(part.bytes, most) : most);
            room.limited = part.split || amount.limited || group.has_value();
            room.context = share_of_context(room.context, part, parts);
            room.plus_context = room.plus_context || part.plus_context;
            set_headroom(settings, gpu, room);
            rooms.push_back(room);
        }
    }
    return rooms;
}

}  // namespace cuslice::cli
