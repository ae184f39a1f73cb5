// SPDX-License-Identifier: Apache-2.0
#pragma once
// Handles that can be checked before anything is dereferenced. A handle is a number, never an address:
//
//   63      54 53   48 47              28 27                 4 3  0
//   |  zero   | kind  |    generation    |       index        | 0 |
//
// Bit 48 and up are set, so that a program which dereferences one faults. A handle that this table did not make, one of
// another kind, and one that was destroyed are all told apart from a live one by comparing the generation.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

namespace cuslice::fake {

enum class HandleKind : uint64_t {
    Context = 1,
    Stream,
    Event,
    Module,
    Function,
    Library,
    Kernel,
    Pool,
    Array,
    Physical,
    Graph,
    GraphExec,
    GraphNode,
    Link,
    MipmappedArray,
    ExternalMemory,
    Multicast,
    ResourceDescription,
    GreenContext,
    UserObject,
    Texture,
    Surface
};

template <typename T, typename Public, HandleKind kind>
class HandleTable {
  public:
    /// Makes a live object. 4 million can live at a time.
    template <typename... Args>
    std::pair<Public, T*> create(Args&&... args) {
        const std::lock_guard hold(lock_);
        uint32_t index = free_;
        if (index != kNone) {
            free_ = cell(index)->next;
        } else {
            index = size_.load(std::memory_order_relaxed);
            auto& chunk = chunks_[index / kPerChunk];
            if (chunk.load(std::memory_order_relaxed) == nullptr)
                chunk.store(new Cell[kPerChunk], std::memory_order_release);
            size_.store(index + 1, std::memory_order_release);
        }
        Cell* made = cell(index);
        T* object = new (made->storage) T(std::forward<Args>(args)...);
        const uint32_t generation = made->generation.load(std::memory_order_relaxed) + 1;  // odd: live
        made->generation.store(generation, std::memory_order_release);
        return {encode(index, generation), object};
    }

    /// The live object behind a handle, or null. Any value may be asked for.
    T* find(Public handle) const {
        const uint64_t bits = bits_of(handle);
        if (bits >> 48 != static_cast<uint64_t>(kind) || (bits & 15) != 0)
            return nullptr;
        const auto index = static_cast<uint32_t>(bits >> 4 & 0xffffff);
        if (index >= size_.load(std::memory_order_acquire))
            return nullptr;
        Cell* found = cell(index);
        const uint32_t generation = found->generation.load(std::memory_order_acquire);
        if ((generation & 1) == 0 || (generation & 0xfffff) != (bits >> 28 & 0xfffff))
            return nullptr;
        return found->object();
    }

    /// Ends the object; false if the handle is not live.
    bool destroy(Public handle) {
        const std::lock_guard hold(lock_);
        if (find(handle) == nullptr)
            return false;
        const auto index = static_cast<uint32_t>(bits_of(handle) >> 4 & 0xffffff);
        Cell* ended = cell(index);
        ended->generation.fetch_add(1, std::memory_order_release);
        ended->object()->~T();
        ended->next = free_;
        free_ = index;
        return true;
    }

    /// Calls f(handle, object) for every live object, and keeps other threads from making and ending one meanwhile; f
    /// must not do so either.
    template <typename F>
    void each_held(F&& f) {
        const std::lock_guard hold(lock_);
        each(f);
    }

    /// Calls f(handle, object) for every live object; f may destroy it. No other thread may.
    template <typename F>
    void each(F&& f) {
        const uint32_t size = size_.load(std::memory_order_acquire);
        for (uint32_t index = 0; index < size; index++) {
            Cell* at = cell(index);
            const uint32_t generation = at->generation.load(std::memory_order_acquire);
            if ((generation & 1) != 0)
                f(encode(index, generation), *at->object());
        }
    }

  private:
    static constexpr uint32_t kPerChunk = 256, kMostChunks = 16384, kNone = ~0U;

    struct Cell {
        std::atomic<uint32_t> generation{0};
        uint32_t next = kNone;
        alignas(T) unsigned char storage[sizeof(T)];
        T* object() { return std::launder(reinterpret_cast<T*>(storage)); }
    };

    Cell* cell(uint32_t index) const {
        return chunks_[index / kPerChunk].load(std::memory_order_acquire) + index % kPerChunk;
    }
    // Most public handle types are pointers, some are integers.
    static uint64_t bits_of(Public handle) {
        if constexpr (std::is_pointer_v<Public>) {
            return reinterpret_cast<uint64_t>(handle);
        } else {
            return handle;
        }
    }
    static Public encode(uint32_t index, uint32_t generation) {
        const uint64_t bits = static_cast<uint64_t>(kind) << 48 | static_cast<uint64_t>(generation & 0xfffff) << 28 |
                              static_cast<uint64_t>(index) << 4;
        if constexpr (std::is_pointer_v<Public>) {
            return reinterpret_cast<Public>(bits);
        } else {
            return bits;
        }
    }

    std::mutex lock_;
    std::atomic<uint32_t> size_{0};
    uint32_t free_ = kNone;
    std::atomic<Cell*> chunks_[kMostChunks] = {};
};

}  // namespace cuslice::fake
