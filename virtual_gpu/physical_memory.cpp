#include "virtual_gpu/physical_memory.h"

#include <algorithm>

namespace cuslice {

std::size_t PhysicalMemory::piece_at(Handle handle) const {
    const auto less = [](const Piece& piece, Handle wanted) { return piece.handle < wanted; };
    return static_cast<std::size_t>(std::lower_bound(pieces_.begin(), pieces_.end(), handle, less) - pieces_.begin());
}

std::size_t PhysicalMemory::mapping_at(std::uint64_t address) const {
    const auto less = [](const Mapping& mapping, std::uint64_t wanted) { return mapping.address < wanted; };
    return static_cast<std::size_t>(std::lower_bound(mappings_.begin(), mappings_.end(), address, less) -
                                    mappings_.begin());
}

PhysicalMemory::Piece* PhysicalMemory::find(Handle handle) {
    const std::size_t i = piece_at(handle);
    return i < pieces_.size() && pieces_[i].handle == handle ? &pieces_[i] : nullptr;
}

// A piece that nothing keeps alive leaves the books.
bool PhysicalMemory::take_if_unused(Handle handle, Piece* ended) {
    const std::size_t i = piece_at(handle);
    if (i == pieces_.size() || pieces_[i].handle != handle || pieces_[i].handles || pieces_[i].mappings) return false;
    *ended = pieces_[i];
    pieces_.erase_at(i);
    return true;
}

bool PhysicalMemory::created(Handle handle, std::uint64_t bytes, int gpu) {
    LockGuard lock(mutex_);
    return pieces_.insert_at(piece_at(handle), {handle, bytes, 1, 0, gpu, false});
}

void PhysicalMemory::retained(Handle handle) {
    LockGuard lock(mutex_);
    if (Piece* piece = find(handle)) piece->handles++;
}

void PhysicalMemory::kept_elsewhere(Handle handle) {
    LockGuard lock(mutex_);
    if (Piece* piece = find(handle)) piece->elsewhere = true;
}

PhysicalMemory::Change PhysicalMemory::release(Handle handle) {
    LockGuard lock(mutex_);
    Piece* piece = find(handle);
    if (!piece || !piece->handles) return {};
    piece->handles--;
    return {handle, 0, 0, true};
}

void PhysicalMemory::release_failed(const Change& change) {
    if (change.noted) retained(change.handle);
}

void PhysicalMemory::release_done(const Change& change, OnFreed on_freed) {
    Piece ended{};
    {
        LockGuard lock(mutex_);
        if (!change.noted || !take_if_unused(change.handle, &ended)) return;
    }
    on_freed(ended.gpu, ended.bytes, ended.elsewhere);
}

bool PhysicalMemory::mapped(CUdeviceptr address, std::uint64_t bytes, Handle handle) {
    LockGuard lock(mutex_);
    Piece* piece = find(handle);
    if (!piece) return true;
    if (!mappings_.insert_at(mapping_at(address), {address, bytes, handle})) return false;
    piece->mappings++;
    return true;
}

std::uint64_t PhysicalMemory::held_on(int gpu, std::uint64_t* pieces) {
    LockGuard lock(mutex_);
    std::uint64_t bytes = 0;
    for (const Piece& piece : pieces_) {
        if (piece.gpu != gpu) continue;
        bytes += piece.bytes;
        ++*pieces;
    }
    return bytes;
}

void PhysicalMemory::unmap(CUdeviceptr address, std::uint64_t bytes, Unmapping* gone) {
    LockGuard lock(mutex_);
    const std::size_t i = mapping_at(address);
    while (i < mappings_.size() && mappings_[i].address - address < bytes) {
        const Mapping mapping = mappings_[i];
        if (!gone->mappings.push_back({mapping.handle, mapping.address, mapping.bytes, true})) return;
        mappings_.erase_at(i);
    }
}

void PhysicalMemory::unmap_failed(Unmapping* gone) {
    LockGuard lock(mutex_);
    for (const Change& m : gone->mappings) mappings_.insert_at(mapping_at(m.address), {m.address, m.bytes, m.handle});
    gone->mappings.release();
}

void PhysicalMemory::unmap_done(Unmapping* gone, OnFreed on_freed) {
    for (const Change& mapping : gone->mappings) {
        Piece ended{};
        {
            LockGuard lock(mutex_);
            if (Piece* piece = find(mapping.handle)) piece->mappings--;
            if (!take_if_unused(mapping.handle, &ended)) continue;
        }
        on_freed(ended.gpu, ended.bytes, ended.elsewhere);
    }
    gone->mappings.release();
}

}  // namespace cuslice
