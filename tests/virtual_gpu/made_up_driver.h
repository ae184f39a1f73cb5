// SPDX-License-Identifier: Apache-2.0
// A driver that a test makes up: contexts on each thread's stack, events in them, streams that are captured, and
// memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/gpu/gpu_state.h"

namespace cuslice::tests {

template <typename Handle>
Handle handle(uintptr_t number) {
    return reinterpret_cast<Handle>(number << 4);
}

inline CUcontext context(uintptr_t number) { return handle<CUcontext>(number); }
inline CUstream stream(uintptr_t number) { return handle<CUstream>(0x1000 + number); }

/// As long as it lives, the driver's functions are those of this one. One at a time.
class MadeUpDriver {
  public:
    MadeUpDriver() {
        now() = this;
        stack().clear();
#define CUSLICE_PUT(symbol) put(Function::symbol, symbol)
        CUSLICE_PUT(cuCtxGetCurrent);
        CUSLICE_PUT(cuCtxSetCurrent);
        CUSLICE_PUT(cuCtxPushCurrent_v2);
        CUSLICE_PUT(cuCtxPopCurrent_v2);
        CUSLICE_PUT(cuCtxSynchronize);
        CUSLICE_PUT(cuCtxSynchronize_v2);
        CUSLICE_PUT(cuCtxRecordEvent);
        CUSLICE_PUT(cuEventCreate);
        CUSLICE_PUT(cuEventDestroy_v2);
        CUSLICE_PUT(cuEventQuery);
        CUSLICE_PUT(cuEventSynchronize);
        CUSLICE_PUT(cuStreamGetCtx);
        CUSLICE_PUT(cuStreamIsCapturing);
        CUSLICE_PUT(cuDeviceCanAccessPeer);
        CUSLICE_PUT(cuPointerGetAttribute);
        CUSLICE_PUT(cuMemAlloc_v2);
        CUSLICE_PUT(cuMemFree_v2);
#undef CUSLICE_PUT
    }
    ~MadeUpDriver() {
        for (const Function function : filled_)
            slot(function) = nullptr;
        for (const CUcontext one : known_)
            gpu_state().contexts.ended(one);
        stack().clear();
        now() = nullptr;
    }
    MadeUpDriver(const MadeUpDriver&) = delete;
    MadeUpDriver& operator=(const MadeUpDriver&) = delete;

    /// The driver is older, or a test has a function of its own. Put back at the end.
    static void lacks(Function function) { slot(function) = nullptr; }
    template <typename F>
    void put(Function function, F* implementation) {
        slot(function) = reinterpret_cast<void*>(implementation);
        filled_.push_back(function);
    }

    /// A context that cuslice knows, with its number there; another one, if one by its handle has ended.
    Contexts::Id make(CUcontext one, CUdevice gpu = 0) {
        known_.insert(one);
        {
            const std::lock_guard lock(mutex);
            ended_.erase(one);
        }
        return gpu_state().contexts.id_of(one, gpu);
    }
    /// It ends, and so do its events; cuslice has been told if `told`.
    void end(CUcontext one, bool told = true) {
        {
            const std::lock_guard lock(mutex);
            ended_.insert(one);
            std::erase_if(events, [&](const auto& event) { return event.second.context == one; });
        }
        if (told)
            gpu_state().contexts.ended(one);
    }
    /// The thread's stack of contexts; what is current is its back.
    static std::vector<CUcontext>& stack() {
        thread_local std::vector<CUcontext> all;
        return all;
    }

    struct Event {
        CUcontext context = nullptr;
        bool recorded = false, passed = false;
    };
    std::mutex mutex;                     // over everything below but `calls`
    std::map<std::string, CUresult> say;  // what a function answers, whatever it is asked
    std::map<CUevent, Event> events;      // that have not been destroyed
    std::map<CUstream, CUstreamCaptureStatus> capturing;
    std::map<CUstream, CUcontext> contexts_of_streams;
    std::set<std::pair<CUdevice, CUdevice>> peers;  // who can be given access to whom
    std::set<CUcontext> reaches;                    // whose kernels can use the address that is asked about
    std::map<CUdeviceptr, size_t> memory;
    size_t room = size_t{1} << 40;  // bytes that it has
    bool instant = true;            // the GPU has come past everything that is given to it
    unsigned misuses = 0;           // what is given to the driver that has ended, or is another context's
    unsigned events_made = 0;
    std::vector<CUcontext> waited_for;  // their work, in this order

    /// Runs in the middle of each call, without a lock.
    std::function<void(std::string_view function)> meanwhile;
    std::atomic<unsigned> calls{0};
    unsigned calls_of(const std::string& function) {
        const std::lock_guard lock(mutex);
        return counts_[function];
    }
    /// The GPU comes past all that has been given to it.
    void pass_all() {
        const std::lock_guard lock(mutex);
        for (auto& [event, known] : events)
            known.passed = true;
    }

  private:
    static MadeUpDriver*& now() {
        static MadeUpDriver* driver = nullptr;
        return driver;
    }
    static void*& slot(Function function) { return cuslice_driver_slots[static_cast<size_t>(function)]; }

    static CUcontext top() { return stack().empty() ? nullptr : stack().back(); }

    /// A function of the driver's: `body` is what it does under the lock, unless a test has said what it answers.
    template <typename Body>
    static CUresult call(const char* function, Body body) {
        MadeUpDriver& driver = *now();
        driver.calls++;
        {
            const std::lock_guard lock(driver.mutex);
            driver.counts_[function]++;
        }
        if (driver.meanwhile)
            driver.meanwhile(function);
        const std::lock_guard lock(driver.mutex);
        const auto said = driver.say.find(function);
        if (said != driver.say.end() && said->second != CUDA_SUCCESS)
            return said->second;
        return body(driver);
    }
    // The state of an event, which has to be of context `in` if that is given; null, and counted as a misuse, if there
    // is none.
    Event* find(CUevent event, CUcontext in = nullptr) {
        const auto at = events.find(event);
        if (at != events.end() && !ended_.count(at->second.context) && (!in || in == at->second.context))
            return &at->second;
        misuses++;
        return nullptr;
    }

    static CUresult CUDAAPI cuCtxGetCurrent(CUcontext* into) {
        *into = top();
        return CUDA_SUCCESS;
    }
    static CUresult CUDAAPI cuCtxSetCurrent(CUcontext one) {
        if (!stack().empty())
            stack().pop_back();
        if (one)
            stack().push_back(one);
        return CUDA_SUCCESS;
    }
    static CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext one) {
        return call("cuCtxPushCurrent", [&](MadeUpDriver& driver) -> CUresult {
            if (driver.ended_.count(one)) {
                driver.misuses++;
                return CUDA_ERROR_INVALID_CONTEXT;
            }
            stack().push_back(one);
            return CUDA_SUCCESS;
        });
    }
    static CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* into) {
        if (stack().empty())
            return CUDA_ERROR_INVALID_CONTEXT;
        *into = stack().back();
        stack().pop_back();
        return CUDA_SUCCESS;
    }
    static CUresult synchronize(CUcontext one) {
        return call("cuCtxSynchronize", [&](MadeUpDriver& driver) -> CUresult {
            if (driver.ended_.count(one))
                driver.misuses++;
            driver.waited_for.push_back(one);
            return CUDA_SUCCESS;
        });
    }
    static CUresult CUDAAPI cuCtxSynchronize() { return synchronize(top()); }
    static CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext one) { return synchronize(one); }

    static CUresult CUDAAPI cuEventCreate(CUevent* into, unsigned) {
        return call("cuEventCreate", [&](MadeUpDriver& driver) -> CUresult {
            if (!top())
                return CUDA_ERROR_INVALID_CONTEXT;
            *into = handle<CUevent>(0x100 + ++driver.events_made);
            driver.events[*into].context = top();
            return CUDA_SUCCESS;
        });
    }
    static CUresult CUDAAPI cuEventDestroy_v2(CUevent event) {
        return call("cuEventDestroy", [&](MadeUpDriver& driver) -> CUresult {
            if (!driver.find(event))
                return CUDA_ERROR_INVALID_HANDLE;
            driver.events.erase(event);
            return CUDA_SUCCESS;
        });
    }
    static CUresult CUDAAPI cuCtxRecordEvent(CUcontext one, CUevent event) {
        return call("cuCtxRecordEvent", [&](MadeUpDriver& driver) -> CUresult {
            Event* known = driver.find(event, one);
            if (!known)
                return CUDA_ERROR_INVALID_HANDLE;
            known->recorded = true;
            known->passed = driver.instant;
            return CUDA_SUCCESS;
        });
    }
    static CUresult CUDAAPI cuEventQuery(CUevent event) {
        return call("cuEventQuery", [&](MadeUpDriver& driver) -> CUresult {
            const Event* known = driver.find(event);
            if (!known)
                return CUDA_ERROR_INVALID_HANDLE;
            return known->passed || !known->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
        });
    }
    static CUresult CUDAAPI cuEventSynchronize(CUevent event) {
        return call("cuEventSynchronize", [&](MadeUpDriver& driver) -> CUresult {
            Event* known = driver.find(event);
            if (!known)
                return CUDA_ERROR_INVALID_HANDLE;
            known->passed = true;
            return CUDA_SUCCESS;
        });
    }

    static CUresult CUDAAPI cuStreamGetCtx(CUstream of, CUcontext* into) {
        return call("cuStreamGetCtx", [&](MadeUpDriver& driver) -> CUresult {
            const auto at = driver.contexts_of_streams.find(of);
            *into = at == driver.contexts_of_streams.end() ? top() : at->second;
            return CUDA_SUCCESS;
        });
    }
    static CUresult CUDAAPI cuStreamIsCapturing(CUstream of, CUstreamCaptureStatus* into) {
        return call("cuStreamIsCapturing", [&](MadeUpDriver& driver) -> CUresult {
            const auto at = driver.capturing.find(of);
            *into = at == driver.capturing.end() ? CU_STREAM_CAPTURE_STATUS_NONE : at->second;
            return CUDA_SUCCESS;
        });
    }

    static CUresult CUDAAPI cuDeviceCanAccessPeer(int* can, CUdevice from, CUdevice to) {
        return call("cuDeviceCanAccessPeer", [&](MadeUpDriver& driver) -> CUresult {
            *can = driver.peers.count({from, to}) ? 1 : 0;
            return CUDA_SUCCESS;
        });
    }
    static CUresult CUDAAPI cuPointerGetAttribute(void* into, CUpointer_attribute, CUdeviceptr address) {
        return call("cuPointerGetAttribute", [&](MadeUpDriver& driver) -> CUresult {
            if (!driver.reaches.count(top()))
                return CUDA_ERROR_INVALID_VALUE;
            *static_cast<CUdeviceptr*>(into) = address;
            return CUDA_SUCCESS;
        });
    }

    static CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* into, size_t bytes) {
        return call("cuMemAlloc", [&](MadeUpDriver& driver) -> CUresult {
            size_t held = 0;
            for (const auto& [address, size] : driver.memory)
                held += size;
            if (!top())
                return CUDA_ERROR_INVALID_CONTEXT;
            if (bytes > driver.room - held)
                return CUDA_ERROR_OUT_OF_MEMORY;
            *into = driver.next_address_;
            driver.next_address_ += (bytes + (size_t{4} << 20)) >> 21 << 21;
            driver.memory[*into] = bytes;
            return CUDA_SUCCESS;
        });
    }
    static CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
        return call("cuMemFree", [&](MadeUpDriver& driver) -> CUresult {
            if (!driver.memory.erase(address))
                return CUDA_ERROR_INVALID_VALUE;
            return CUDA_SUCCESS;
        });
    }

    std::vector<Function> filled_;
    std::set<CUcontext> known_, ended_;
    std::map<std::string, unsigned> counts_;
    CUdeviceptr next_address_ = CUdeviceptr{1} << 42;
};

}  // namespace cuslice::tests
