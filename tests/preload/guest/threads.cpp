// SPDX-License-Identifier: Apache-2.0
// Several threads, and threads that are cancelled.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "tests/preload/guest/guest.h"
#include "tests/preload/guest/refusal_check.h"
#include "tests/sleeping.h"

namespace guest {
namespace {

// One thread's part of a storm: blocks of many sizes, taken and given back in no order, all given back in the end.
unsigned storm(Program& p, unsigned seed, size_t steps, size_t largest) {
    std::mt19937 random(seed);
    std::vector<CUdeviceptr> held;
    unsigned bad = 0;
    p.driver.cuCtxSetCurrent(p.current);
    for (size_t i = 0; i < steps; ++i) {
        if (held.empty() || random() % 2) {
            CUdeviceptr block = 0;
            const CUresult result = p.driver.cuMemAlloc_v2(&block, 1 + random() % largest);
            if (result == CUDA_SUCCESS)
                held.push_back(block);
            bad += result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            std::swap(held[random() % held.size()], held.back());
            bad += p.driver.cuMemFree_v2(held.back()) != CUDA_SUCCESS;
            held.pop_back();
        }
    }
    for (const CUdeviceptr block : held)
        bad += p.driver.cuMemFree_v2(block) != CUDA_SUCCESS;
    return bad;
}

// A thread that works until it is cancelled. Only the driver's functions allocate or lock in it, so that it can be
// cancelled anywhere.
struct Victim {
    Program* program;
    std::string what;
    int type;
    std::atomic<bool> begun{false};
};

#ifdef __SANITIZE_ADDRESS__
extern "C" void __asan_handle_no_return();

// asan takes back what it marks on a stack as functions return, which a cancelled thread's don't: whatever that thread
// runs as it ends would stumble over the marks.
[[gnu::noinline, gnu::no_sanitize_address]] void remove_marks(void*) {
    [[maybe_unused]] volatile char deeper_than_they_are[256 << 10];
    deeper_than_they_are[0] = 0;
    __asan_handle_no_return();
}

// Made before the library's own, so that it is taken first.
const pthread_key_t marks_key = [] {
    pthread_key_t key = 0;
    pthread_key_create(&key, remove_marks);
    return key;
}();

void remove_marks_at_end() { pthread_setspecific(marks_key, &marks_key); }
#else
void remove_marks_at_end() {}
#endif

void* work(void* argument) {
    remove_marks_at_end();
    auto& victim = *static_cast<Victim*>(argument);
    const Driver& d = victim.program->driver;
    const bool async = victim.what == "async", info = victim.what == "info", start = victim.what == "start",
               retain = victim.what == "retain";
    const size_t bytes = victim.what == "large" ? 16 << 20 : 65536;
    int before = 0;
    pthread_setcanceltype(victim.type, &before);
    if (!start)
        d.cuCtxSetCurrent(victim.program->current);
    for (;;) {
        CUdeviceptr block = 0;
        CUcontext context = nullptr;
        size_t free = 0, total = 0;
        victim.begun = true;
        if (start) {
            d.cuInit(0);
        } else if (info) {
            d.cuMemGetInfo_v2(&free, &total);
        } else if (retain) {
            if (d.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS)
                d.cuDevicePrimaryCtxRelease_v2(0);
        } else if (async) {
            if (d.cuMemAllocAsync(&block, 65536, nullptr) == CUDA_SUCCESS)
                d.cuMemFreeAsync(block, nullptr);
        } else {
            if (d.cuMemAlloc_v2(&block, bytes) == CUDA_SUCCESS)
                d.cuMemFree_v2(block);
        }
        pthread_testcancel();
    }
    return nullptr;
}

// A thread that is inside a call, and what it was answered.
struct Aside {
    std::thread thread;
    std::atomic<pid_t> id{0};
    std::string said;
    std::optional<NotAlone> both;
} aside;

// The C library's own pthread_cancel, as code finds it that was opened with RTLD_DEEPBIND.
int cancel_past_us(pthread_t thread) {
    void* found = nullptr;
    for (const char* library : {"libpthread.so.0", "libc.so.6"})
        if (void* opened = found ? nullptr : dlopen(library, RTLD_LAZY | RTLD_NOLOAD))
            found = dlsym(opened, "pthread_cancel");
    return found ? reinterpret_cast<int (*)(pthread_t)>(found)(thread) : -1;
}

CUresult allocate(Program& p, const std::string& how, size_t bytes) {
    CUdeviceptr block = 0;
    return how == "async" ? p.driver.cuMemAllocAsync(&block, bytes, nullptr) : p.driver.cuMemAlloc_v2(&block, bytes);
}

}  // namespace

void add_thread_commands(Commands& commands) {
    // thread COMMAND …: in a thread of its own, with the same context current
    commands["thread"] = [](Program& p, const Words& w) {
        std::string said;
        std::thread([&] {
            if (p.current)
                p.driver.cuCtxSetCurrent(p.current);
            said = execute(p, w);
        }).join();
        return said;
    };
    // aside COMMAND …: the same, and goes on as soon as the thread sleeps; `joined` waits for it, and says its answer.
    // Names that the command gives are known to itself alone.
    commands["aside"] = [](Program& p, const Words& w) {
        aside.both.emplace();
        aside.thread = std::thread([own = p, w]() mutable {
            if (own.current)
                own.driver.cuCtxSetCurrent(own.current);
            aside.id = cuslice::tests::this_thread();
            aside.said = execute(own, w);
        });
        while (!aside.id)
            std::this_thread::yield();
        cuslice::tests::await_sleep(aside.id);
        return answer(CUDA_SUCCESS);
    };
    commands["joined"] = [](Program&, const Words&) {
        aside.thread.join();
        aside.both.reset();
        return aside.said;
    };
    // storm THREADS STEPS LARGEST: how many calls gave an answer that they shouldn't
    commands["storm"] = [](Program& p, const Words& w) {
        std::vector<std::thread> threads;
        std::atomic<unsigned> bad{0};
        for (unsigned i = 0; i < number(w.at(0)); ++i)
            threads.emplace_back([&, i] { bad += storm(p, i, number(w.at(1)), number(w.at(2))); });
        for (std::thread& thread : threads)
            thread.join();
        return answer(CUDA_SUCCESS, bad.load());
    };
    // crowd alloc|async THREADS BYTES: each allocates once; how many were refused
    commands["crowd"] = [](Program& p, const Words& w) {
        std::vector<std::thread> threads;
        std::atomic<unsigned> bad{0};
        for (size_t i = 0; i < number(w.at(1)); ++i)
            threads.emplace_back([&] {
                p.driver.cuCtxSetCurrent(p.current);
                bad += allocate(p, w.at(0), number(w.at(2))) != CUDA_SUCCESS;
            });
        for (std::thread& thread : threads)
            thread.join();
        return answer(CUDA_SUCCESS, bad.load());
    };
    // forkinside alloc|async BYTES, forkinside retain DEVICE: forks while another thread is inside the driver, where it
    // waits for this one to come in too; what that thread was answered
    commands["forkinside"] = [](Program& p, const Words& w) {
        const auto go_inside = [&](unsigned long what) {
            CUcontext context = nullptr;
            return w.at(0) == "retain" ? p.driver.cuDevicePrimaryCtxRetain(&context, static_cast<CUdevice>(what))
                                       : allocate(p, w.at(0), what);
        };
        std::atomic<pid_t> other{0};
        CUresult result = CUDA_ERROR_UNKNOWN;
        std::thread thread([&] {
            p.driver.cuCtxSetCurrent(p.current);
            other = cuslice::tests::this_thread();
            result = go_inside(number(w.at(1)));
        });
        const NotAlone both;
        while (!other)
            std::this_thread::yield();
        cuslice::tests::await_sleep(other);
        const pid_t child = fork();
        if (child == 0)
            _exit(0);
        // The driver has this call too, and refuses it for want of a context, or of such a GPU.
        p.driver.cuCtxSetCurrent(nullptr);
        go_inside(w.at(0) == "retain" ? 1000 : number(w.at(1)));
        p.driver.cuCtxSetCurrent(p.current);
        thread.join();
        int status = 0;
        waitpid(child, &status, 0);
        return answer(result, status);
    };
    // lifetimes THREADS TIMES DEVICES: primary contexts and ones of each thread's own, begun and ended so often; how
    // many calls failed
    commands["lifetimes"] = [](Program& p, const Words& w) {
        std::vector<std::thread> threads;
        std::atomic<unsigned> bad{0};
        const int devices = std::stoi(w.at(2));
        for (int i = 0; i < std::stoi(w.at(0)); ++i)
            threads.emplace_back([&, i] {
                for (int k = 0; k < std::stoi(w.at(1)); ++k) {
                    const CUdevice device = (i + k) % devices;
                    CUcontext context = nullptr, own = nullptr;
                    bad += p.driver.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS;
                    bad += p.driver.cuCtxCreate_v2(&own, 0, device) != CUDA_SUCCESS;
                    bad += p.driver.cuDevicePrimaryCtxRelease_v2(device) != CUDA_SUCCESS;
                    bad += p.driver.cuCtxDestroy_v2(own) != CUDA_SUCCESS;
                }
            });
        for (std::thread& thread : threads)
            thread.join();
        return answer(CUDA_SUCCESS, bad.load());
    };
    // mix LOADS BYTES: one thread loads and unloads a module so often, and another one allocates and frees all the time
    // meanwhile; how many calls of the first failed
    commands["mix"] = [](Program& p, const Words& w) {
        std::atomic<bool> done{false};
        std::atomic<unsigned> bad{0};
        std::thread other([&] {
            p.driver.cuCtxSetCurrent(p.current);
            while (!done) {
                CUdeviceptr block = 0;
                if (p.driver.cuMemAlloc_v2(&block, number(w.at(1))) == CUDA_SUCCESS)
                    p.driver.cuMemFree_v2(block);
            }
        });
        const NotAlone both;
        for (size_t i = 0; i < number(w.at(0)); ++i) {
            bad += execute(p, {"module", "mixed", "1000"}) != "0";
            bad += execute(p, {"unload", "mixed"}) != "0";
        }
        done = true;
        other.join();
        return answer(CUDA_SUCCESS, bad.load());
    };
    // asynchronous: from now on this thread can be cancelled at any time, which nobody does
    commands["asynchronous"] = [](Program&, const Words&) {
        return answer(CUDA_SUCCESS, pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr));
    };
    // cancel WHAT deferred|asynchronous COUNT: so many threads, one after the other, are cancelled while they alloc
    // (plain, large or async), ask for info, retain or start; how many of them were. With `past` behind it, in a way
    // that the library can't see.
    commands["cancel"] = [](Program& p, const Words& w) {
        unsigned cancelled = 0;
        for (size_t i = 0; i < number(w.at(2)); ++i) {
            Victim victim{&p, w.at(0), w.at(1) == "deferred" ? PTHREAD_CANCEL_DEFERRED : PTHREAD_CANCEL_ASYNCHRONOUS};
            pthread_t thread;
            pthread_create(&thread, nullptr, work, &victim);
            while (!victim.begun)
                std::this_thread::yield();
            w.size() > 3 ? cancel_past_us(thread) : pthread_cancel(thread);
            // It ends in no other way. (Its result would say so too, but some C libraries forget it when a cancellation
            // was held back for a while.)
            cancelled += pthread_join(thread, nullptr) == 0;
        }
        return answer(CUDA_SUCCESS, cancelled);
    };
}

}  // namespace guest
