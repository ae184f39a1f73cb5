// SPDX-License-Identifier: Apache-2.0
#pragma once
// An event that several processes have: two counters in a file that all of them map. A record takes the next number,
// and is reached when the second counter has come to it.

#include <atomic>
#include <cstdint>
#include <memory>

#include "fake/driver/cuda_api.h"

namespace cuslice::fake {

class SharedEvent {
  public:
    /// A new one, or null if there is no file to be had.
    static std::shared_ptr<SharedEvent> make();
    /// Another process's: CUDA_ERROR_INVALID_HANDLE if it is gone, or never was.
    static CUresult open(const CUipcEventHandle& handle, std::shared_ptr<SharedEvent>& out);
    ~SharedEvent();
    SharedEvent(const SharedEvent&) = delete;
    SharedEvent& operator=(const SharedEvent&) = delete;

    /// Makes the handle by which another process opens the event; false if this process has opened it itself.
    bool handle(CUipcEventHandle& out) const;

    /// The number of a record that is under way from now on.
    uint32_t begin_record();
    void reach(uint32_t number);
    /// The latest record, by whichever process.
    uint32_t latest() const;
    /// True if the record is reached, or never will be: the process that recorded has ended.
    bool reached(uint32_t number) const;
    void wait(uint32_t number) const;

  private:
    struct Page;
    explicit SharedEvent(Page* page, int file) : page_(page), file_(file) {}

    Page* page_;
    int file_;  // -1: another process's
};

}  // namespace cuslice::fake
