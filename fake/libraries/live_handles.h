// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <cstdlib>
#include <new>

namespace cuslice::fake {

/// The handles that a library has given out and not taken back. `Handle` has a member `next`. Thread-safe; as with
/// NVIDIA's libraries, whoever uses a handle must not let another thread destroy it meanwhile.
template <class Handle>
class LiveHandles {
  public:
    constexpr LiveHandles() = default;

    /// Null: the host has no memory.
    Handle* create() {
        void* memory = std::malloc(sizeof(Handle));
        if (memory == nullptr)
            return nullptr;
        auto* handle = new (memory) Handle{};
        pthread_mutex_lock(&mutex_);
        handle->next = first_;
        first_ = handle;
        pthread_mutex_unlock(&mutex_);
        return handle;
    }

    bool has(const Handle* handle) {
        pthread_mutex_lock(&mutex_);
        const Handle* one = first_;
        while (one != nullptr && one != handle)
            one = one->next;
        pthread_mutex_unlock(&mutex_);
        return one != nullptr;
    }

    /// False: there is no such handle, so that of two threads one destroys it.
    bool destroy(Handle* handle) {
        pthread_mutex_lock(&mutex_);
        Handle** link = &first_;
        while (*link != nullptr && *link != handle)
            link = &(*link)->next;
        const bool found = *link != nullptr;
        if (found)
            *link = handle->next;
        pthread_mutex_unlock(&mutex_);
        if (found)
            std::free(handle);
        return found;
    }

  private:
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    Handle* first_ = nullptr;
};

}  // namespace cuslice::fake
