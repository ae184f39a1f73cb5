#pragma once
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/base/page_vector.h"

namespace cuslice {

// What the driver makes in a real context is one virtual GPU's.
enum class HandleKind : std::uint8_t { stream, module, array, mipmap, pool, piece, node, green, green_context };

struct HandleOwner {
    bool known = false;
    std::uint8_t device = 0;    // the virtual GPU's ordinal
    std::uint64_t context = 0;  // the number of the virtual context that it ends with; 0: none
};

// Whose the driver's handles are, by handle and kind. Thread-safe.
class HandleRegistry {
  public:
    // False if the kernel gives no memory.
    bool add(const void* handle, HandleKind kind, int device, std::uint64_t context);
    HandleOwner find(const void* handle, HandleKind kind);
    void remove(const void* handle, HandleKind kind);
    // Removes and returns one that ends with this context, the last of `kind`; null if there is none.
    void* take_of(std::uint64_t context, HandleKind kind);

    Mutex& mutex() { return mutex_; }

  private:
    struct Row {
        const void* handle;  // null: free
        std::uint64_t context;
        HandleKind kind;
        std::uint8_t device;
    };
    std::size_t home(const void* handle) const;
    std::size_t find_row(const void* handle, HandleKind kind) const;
    bool grow();
    void put(const Row& row);
    void remove_row(std::size_t i);

    Mutex mutex_;
    PageVector<Row> rows_;  // a power of two of them, open addressing
    std::size_t count_ = 0;
};

extern constinit HandleRegistry the_handle_registry;
inline HandleRegistry& handle_registry() { return the_handle_registry; }

}  // namespace cuslice
