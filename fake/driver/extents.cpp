// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/extents.h"

#include <algorithm>
#include <cstring>

#include "fake/driver/host_room.h"

namespace cuslice::fake {
namespace {

bool all_mapped(const Extents& extents) {
    return std::all_of(extents.begin(), extents.end(),
                       [](const Extent& extent) { return extent.mapped == nullptr || *extent.mapped; });
}

/// The most that writing these can take of the host's memory: all the pages that they touch.
size_t most_taken(const Extents& extents) {
    size_t bytes = 0;
    for (const Extent& extent : extents)
        if (extent.space != nullptr)
            bytes += extent.size + 2 * kPageBytes;
    return bytes;
}

/// Calls f(target, source, size) for each stretch that lies in one extent of either side.
template <typename F>
void each_stretch(const Extents& to, const Extents& from, F&& f) {
    size_t i = 0, j = 0, done_to = 0, done_from = 0;
    while (i < to.size() && j < from.size()) {
        const size_t part = std::min(to[i].size - done_to, from[j].size - done_from);
        f(Extent{to[i].space, to[i].at + done_to, part}, Extent{from[j].space, from[j].at + done_from, part}, part);
        done_to += part;
        done_from += part;
        if (done_to == to[i].size)
            i++, done_to = 0;
        if (done_from == from[j].size)
            j++, done_from = 0;
    }
}

size_t copy_takes(const Extents& to, const Extents& from) {
    size_t bytes = 0;
    each_stretch(to, from, [&](const Extent& target, const Extent& source, size_t size) {
        if (target.space == nullptr)
            return;
        bytes += source.space == nullptr ? target.space->write_takes(target.at, size)
                                         : target.space->copy_takes(target.at, *source.space, source.at, size);
    });
    return bytes;
}

size_t fill_takes(const Extents& extents, uint32_t pattern) {
    size_t bytes = 0;
    for (const Extent& extent : extents)
        if (extent.space != nullptr)
            bytes += extent.space->fill_takes(extent.at, pattern, extent.size);
    return bytes;
}

}  // namespace

bool on_host(const Extents& extents) {
    return std::any_of(extents.begin(), extents.end(), [](const Extent& extent) {
        return extent.space == nullptr || (extent.gpu != nullptr && extent.space == &extent.gpu->managed.space);
    });
}

CUresult copy_extents(const Extents& to, const Extents& from) {
    if (!all_mapped(to) || !all_mapped(from))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (!host_has_room(most_taken(to), [&] { return copy_takes(to, from); }))
        return CUDA_ERROR_OUT_OF_MEMORY;
    each_stretch(to, from, [](const Extent& target, const Extent& source, size_t size) {
        if (target.space != nullptr && source.space != nullptr) {
            target.space->copy(target.at, *source.space, source.at, size);
        } else if (target.space != nullptr) {
            target.space->write(target.at, reinterpret_cast<const void*>(source.at), size);
        } else if (source.space != nullptr) {
            source.space->read(source.at, reinterpret_cast<void*>(target.at), size);
        } else {
            std::memmove(reinterpret_cast<void*>(target.at), reinterpret_cast<const void*>(source.at), size);
        }
    });
    return CUDA_SUCCESS;
}

CUresult fill_extents(const Extents& extents, uint32_t pattern) {
    if (!all_mapped(extents))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (!host_has_room(most_taken(extents), [&] { return fill_takes(extents, pattern); }))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (const Extent& extent : extents) {
        if (extent.space != nullptr) {
            extent.space->fill(extent.at, pattern, extent.size);
            continue;
        }
        unsigned char bytes[4];
        std::memcpy(bytes, &pattern, 4);
        auto* to = reinterpret_cast<unsigned char*>(extent.at);
        for (size_t i = 0; i < extent.size; i++)
            to[i] = bytes[(extent.at + i) % 4];
    }
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
