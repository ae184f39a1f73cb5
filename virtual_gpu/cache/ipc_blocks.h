// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/base/own_descriptors.h"
#include "policy/base/page_vector.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// Handles of blocks that begin somewhere in a segment. The driver's handle stands for the whole segment, and whoever
// opens it gets the segment's first byte; so a block's handle is one of ours, which leads to the driver's and says how
// far in the block begins. The driver's lies in a file without a name that this process keeps open and the other one
// finds by its pid, and that ends with the process as the driver's handle does. So it can be opened under cuslice only,
// by the same user, in the same pid namespace.
//
// A file is written through its mapping alone: the program may close its descriptor and have another file under the
// number. Then the handles that led there are as those of a process that has ended, and later ones lead to a new file.
//
// A block at a segment's beginning needs none of this. Thread-safe.
class IpcBlocks {
  public:
    // Exchanges the driver's handle of a segment for one of a block `offset` bytes into it. False if the kernel gives
    // no file.
    bool give(CUipcMemHandle* handle, uint64_t offset, uint64_t bytes);

    // A block as described by a handle that somebody was given.
    struct Given {
        bool ours = false;      // false: it is the driver's own
        bool readable = false;  // false: its process has ended, or can't be seen from here
        CUipcMemHandle handle;  // the driver's
        uint64_t offset = 0, bytes = 0;
    };
    static Given read(const CUipcMemHandle& handle);

    // A block was opened at `address`, `offset` bytes into what the driver opened. False if there is no memory to note
    // it in.
    bool opened(CUdeviceptr address, uint64_t offset, uint64_t bytes);
    // It is closed: what the driver opened, or `address` itself where that is it.
    CUdeviceptr closed(CUdeviceptr address);
    // How large the opened block is that begins here; 0: none does.
    uint64_t bytes_at(CUdeviceptr address);

    // In a forked child: its parent's handles are the parent's.
    void forget();

  private:
    // Contents of a file. `nonce` comes first, so that a process that opens a file by its number can tell that it is
    // this one.
    struct Page {
        static constexpr uint32_t kSlots = 1023;
        uint64_t nonce;
        CUipcMemHandle handles[kSlots];  // the driver's
    };
    struct File {
        int descriptor;
        FileIdentity identity;
        Page* page;  // not mapped in a forked child
        uint32_t used;
        bool is_open() const { return identity_of(descriptor) == identity; }
    };
    File* place_of(const CUipcMemHandle& handle, uint32_t* slot) CUSLICE_REQUIRES(mutex_);
    bool make_file() CUSLICE_REQUIRES(mutex_);
    struct Open {
        CUdeviceptr address;
        uint64_t offset, bytes;
        unsigned uses;  // the driver counts them, too
    };
    Open* find(CUdeviceptr address) CUSLICE_REQUIRES(mutex_);

    Mutex mutex_{LockRank::ipc_blocks};
    PageVector<Open> open_ CUSLICE_GUARDED_BY(mutex_);
    PageVector<File> files_ CUSLICE_GUARDED_BY(mutex_);
};

}  // namespace cuslice
