// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/managed_hints.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "fake/driver/host_page.h"

namespace cuslice::fake {
namespace {

/// One block's hints: each holds from its address to the next one's.
struct BlockHints {
    uint32_t id = 0;  // of the block: another one may lie here later
    std::map<Address, Hints> from;
};

BlockHints& hints_of(const Found& block) {
    static auto* all = new std::map<Address, BlockHints>;
    BlockHints& hints = (*all)[block.base];
    if (hints.id != block.record.id || hints.from.empty())
        hints = {block.record.id, {{0, Hints{}}}};
    return hints;
}

/// Lets hints begin at an address.
std::map<Address, Hints>::iterator split(std::map<Address, Hints>& from, Address at) {
    const auto next = from.lower_bound(at);
    if (next != from.end() && next->first == at)
        return next;
    return from.emplace_hint(next, at, std::prev(next)->second);
}

Address page_of(Address address) { return address / kHostPage * kHostPage; }

bool same(const CUmemLocation& one, const CUmemLocation& other) { return one.type == other.type && one.id == other.id; }

}  // namespace

void change_hints(const Found& block, Address from, size_t bytes, void (*change)(Hints& hints, CUmemLocation place),
                  CUmemLocation place) {
    auto& all = hints_of(block).from;
    split(all, page_of(from + bytes - 1) + kHostPage);
    const auto first = split(all, page_of(from));
    const auto end = all.find(page_of(from + bytes - 1) + kHostPage);
    for (auto at = first; at != end; ++at)
        change(at->second, place);
}

Hints common_hints(const Found& block, Address from, size_t bytes) {
    const auto& all = hints_of(block).from;
    auto at = std::prev(all.upper_bound(from));
    Hints common = at->second;
    for (++at; at != all.end() && at->first <= from + bytes - 1; ++at) {
        const Hints& here = at->second;
        common.read_mostly = common.read_mostly && here.read_mostly;
        if (!same(common.preferred, here.preferred))
            common.preferred = Hints::kNowhere;
        if (!same(common.prefetched, here.prefetched))
            common.prefetched = Hints::kNowhere;
        std::set<int> both;
        std::set_intersection(common.accessed_by.begin(), common.accessed_by.end(), here.accessed_by.begin(),
                              here.accessed_by.end(), std::inserter(both, both.end()));
        common.accessed_by = std::move(both);
    }
    return common;
}

}  // namespace cuslice::fake
