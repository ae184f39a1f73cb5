// SPDX-License-Identifier: Apache-2.0
// Threads, for which nothing of libpthread may be linked: before glibc 2.34 it is a library of its own, which a program
// without threads has not loaded.
#include "virtual_gpu/cache/threads.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>

#include "policy/base/held_signals.h"
#include "policy/base/mutex.h"
#include "virtual_gpu/driver/libdl.h"

namespace cuslice {

namespace {

template <typename Type>
Type* of_libpthread(const char* name, Type*) {
    return reinterpret_cast<Type*>(Libdl::dlsym(RTLD_DEFAULT, name));
}
#define CUSLICE_LIBPTHREAD(name) of_libpthread(#name, static_cast<decltype(&::name)>(nullptr))

constinit std::atomic<pthread_key_t> key{0};
constinit std::atomic<int> key_state{0};  // 1: made, 2: there are no threads
constinit Mutex key_mutex{LockRank::thread_key};

}  // namespace

bool start_background_thread(void* (*body)(void*), void* argument) {
    const auto create = CUSLICE_LIBPTHREAD(pthread_create);
    const auto detach = CUSLICE_LIBPTHREAD(pthread_detach);
    const auto mask = CUSLICE_LIBPTHREAD(pthread_sigmask);
    if (!create || !detach || !mask)
        return false;
    sigset_t all, before;
    sigfillset(&all);
    mask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const bool started = create(&thread, nullptr, body, argument) == 0;
    if (started)
        detach(thread);
    mask(SIG_SETMASK, &before, nullptr);
    return started;
}

// Once in a thread: signals are held back as the loader has locks of its own.
void at_thread_end(void (*last)(void*), void* argument) {
    const HeldSignals held;
    const auto set = CUSLICE_LIBPTHREAD(pthread_setspecific);
    if (key_state.load(std::memory_order_acquire) == 0) {
        // Without the lock: who looks up waits for the loader, and that may be in a library that forks.
        const auto create = CUSLICE_LIBPTHREAD(pthread_key_create);
        LockGuard lock(key_mutex);
        if (key_state.load(std::memory_order_relaxed) == 0) {
            pthread_key_t made = 0;
            const bool there = set && create && create(&made, last) == 0;
            key.store(made, std::memory_order_relaxed);
            key_state.store(there ? 1 : 2, std::memory_order_release);
        }
    }
    if (key_state.load(std::memory_order_acquire) == 1)
        set(key.load(std::memory_order_relaxed), argument);
}

}  // namespace cuslice
