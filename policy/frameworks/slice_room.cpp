// SPDX-License-Identifier: Apache-2.0
#include "policy/frameworks/slice_room.h"

#include <algorithm>

#include "config/resolve.h"
#include "policy/budget/headroom.h"

namespace cuslice {
namespace {

void set_headroom(const Settings& settings, const SeenGpu& gpu, SliceRoom& room) {
    const uint64_t derived = room.plus_context ? 0 : derived_headroom(room.context);
    room.headroom = headroom_for(settings, gpu.identity).value_or(derived);
}

}  // namespace

uint64_t share_of_context(uint64_t context, uint64_t part, uint64_t all) {
    const double share = all == 0 ? 1 : static_cast<double>(part) / static_cast<double>(all);
    return static_cast<uint64_t>(static_cast<double>(context) * share);
}

uint64_t share_of_context(uint64_t context, const VirtualPart& part, const VirtualParts& parts) {
    uint64_t all = 0;
    for (const VirtualPart& one : parts.view())
        all += one.bytes;
    return part.split ? share_of_context(context, part.bytes, all) : context;
}

SliceRoom room_of(const Settings& settings, const SeenGpu& gpu, uint64_t limit) {
    SliceRoom room;
    room.limit = limit;
    room.context_known = gpu.context.has_value();
    room.context = gpu.context.value_or(kBelievedContext);
    room.plus_context = amount_for(settings, gpu.identity, gpu.total).plus_context;
    set_headroom(settings, gpu, room);
    return room;
}

SliceRoom room_of_part(const Settings& settings, const SeenGpu& gpu, uint64_t limit, uint64_t all) {
    SliceRoom room = room_of(settings, gpu, limit);
    room.context = share_of_context(room.context, limit, all);
    const Entry* const split = find(settings, Key::split, gpu.identity);
    room.plus_context = room.plus_context || (split && split->plus_context);
    set_headroom(settings, gpu, room);
    return room;
}

void SliceRooms::find(const Settings& settings, const SeenGpu& gpu) {
    count_ = 0;
    if (gpu.total == 0)
        return;
    const Amount amount = amount_for(settings, gpu.identity, gpu.total);
    const bool grouped = cuslice::find(settings, Key::group) != nullptr;
    const auto group = grouped ? group_limit_for(settings, gpu.identity) : std::nullopt;
    const uint64_t most = std::min(amount.bytes, group.value_or(amount.bytes));
    parts_ = {};
    ConfigError unused;
    if (!plan_split(settings, {&gpu.identity, 1}, {&gpu.total, 1}, parts_, unused))
        return;
    for (const VirtualPart& part : parts_.view()) {
        SliceRoom room = room_of(settings, gpu, part.split ? std::min(part.bytes, most) : most);
        room.limited = part.split || amount.limited || group.has_value();
        room.context = share_of_context(room.context, part, parts_);
        room.plus_context = room.plus_context || part.plus_context;
        set_headroom(settings, gpu, room);
        rooms_[count_++] = room;
    }
}

}  // namespace cuslice
