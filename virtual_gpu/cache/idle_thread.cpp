// Threads, for which nothing of libpthread may be linked: before glibc 2.34 it is a library of its own, which a program
// without threads has not loaded.
#include "virtual_gpu/cache/idle_thread.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <ctime>

#include "policy/mutex.h"
#include "virtual_gpu/cache/relaxed_captures.h"
#include "virtual_gpu/driver/libc.h"
#include "virtual_gpu/process.h"

namespace cuslice {

namespace {

template <typename Type>
Type* of_libpthread(const char* name, Type*) {
    return reinterpret_cast<Type*>(dlsym(RTLD_DEFAULT, name));
}
#define CUSLICE_LIBPTHREAD(name) of_libpthread(#name, static_cast<decltype(&::name)>(nullptr))

void sleep_for(std::uint64_t milliseconds) {
    timespec time{static_cast<std::time_t>(milliseconds / 1000), static_cast<long>(milliseconds % 1000 * 1'000'000)};
    while (nanosleep(&time, &time) != 0) {
    }
}

// Four looks in the time that memory may lie idle; and often enough for another process that waits for some of it.
std::uint64_t look_after() {
    std::uint64_t shortest = ~0ull;
    process().caches().each([&](const ContextCache& cache) {
        if (const std::uint64_t idle = cache.gpu->slice().idle_release) shortest = std::min(shortest, idle);
    });
    return std::clamp<std::uint64_t>(shortest / 4, 10, 100);
}

void* run(void*) {
    const RelaxedCaptures relaxed;
    for (;;) {
        sleep_for(look_after());
        process().caches().each([](ContextCache& cache) {
            const std::uint64_t idle = cache.gpu->slice().idle_release * 1'000'000, now = Caches::now();
            if (!idle) return;
            if (cache.gpu->asked_to_trim()) return cache.allocator.help_out();
            // What threads keep for themselves is left to them while anything goes on.
            const std::uint64_t operations = cache.allocator.operations();
            const bool asleep = operations == cache.operations_seen;
            cache.operations_seen = operations;
            cache.allocator.release_idle(now, idle, asleep);
        });
    }
}

constinit std::atomic<pthread_key_t> key{0};
constinit std::atomic<int> key_state{0};  // 1: made, 2: there are no threads
constinit Mutex key_mutex;

}  // namespace

void start_idle_thread() {
    const auto create = CUSLICE_LIBPTHREAD(pthread_create);
    const auto detach = CUSLICE_LIBPTHREAD(pthread_detach);
    const auto mask = CUSLICE_LIBPTHREAD(pthread_sigmask);
    if (!create || !detach || !mask) return;
    sigset_t all, before;
    sigfillset(&all);
    mask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    if (create(&thread, nullptr, run, nullptr) == 0) detach(thread);
    mask(SIG_SETMASK, &before, nullptr);
}

void at_thread_end(void (*last)()) {
    const auto set = CUSLICE_LIBPTHREAD(pthread_setspecific);
    if (key_state.load(std::memory_order_acquire) == 0) {
        LockGuard lock(key_mutex);
        if (key_state.load(std::memory_order_relaxed) == 0) {
            const auto create = CUSLICE_LIBPTHREAD(pthread_key_create);
            pthread_key_t made = 0;
            const bool there = set && create && create(&made, [](void* f) { reinterpret_cast<void (*)()>(f)(); }) == 0;
            key.store(made, std::memory_order_relaxed);
            key_state.store(there ? 1 : 2, std::memory_order_release);
        }
    }
    if (key_state.load(std::memory_order_acquire) == 1)
        set(key.load(std::memory_order_relaxed), reinterpret_cast<void*>(last));
}

}  // namespace cuslice
