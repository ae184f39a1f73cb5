// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

// The holdings of an account's members, by the ledger and by the driver.
//
// A member's charge falls when its process calls the library. What it has given back where no hook is (a pool at a
// synchronisation, memory that another process had open) stays charged until then, and its process may sleep. So
// whoever would be refused compares the charge with the driver's figure of that process, and may take the difference
// beyond the ceiling. The owner's charge isn't touched: its next call corrects it, and the total with it. Whatever the
// owner takes meanwhile it reserves first, on top of what it is charged with.
//
// The comparison means something only while nothing of the owner's is between its charge and the driver. Its process
// says when that was so, by the number of operations that its stripes had seen (Member::settled). Every reservation is
// an operation: as long as the number is the same, nothing has begun.
namespace cuslice::ledger {

struct File;

/// Tells what the driver has for a process.
struct Figures {
    enum class Answer : uint8_t { known, absent, failed };
    /// `pid`: in the pid namespace `pid_namespace`. Bytes.
    Answer (*read)(void* self, int32_t pid, uint64_t* bytes) = nullptr;
    void* self = nullptr;
    uint64_t pid_namespace = 0;
};

/// The members of an account at one moment. Of more than kMax the rest holds what it is charged with. The own process
/// is never settled: only what it holds beyond its charge counts.
///
/// The driver has a figure of the process on the whole GPU, and none of a part. A part's bytes can't be more than that,
/// so what is charged beyond it was given back. Less is found than on a whole GPU: all that the process really holds on
/// other parts, and their shares of its context, may be this part's for all that is known.
struct Holdings {
    static constexpr unsigned kMax = 64;
    struct One {
        uint32_t member = 0;
        int32_t pid = 0;
        uint64_t pid_namespace = 0;
        uint64_t operations = 0, held = 0;
        bool settled = false;
        uint64_t elsewhere = 0;  // bytes that it is charged with on other parts of the GPU
    };
    const File* file = nullptr;
    unsigned count = 0;
    One list[kMax];

    /// Null: it isn't in the list.
    const One* find(int32_t pid, uint64_t pid_namespace) const;
    /// Bytes that they are charged with and that the driver has back, less what any of them holds beyond its charge. 0
    /// where a figure can't be had. Asks NVML: no lock may be held.
    uint64_t given_back(const Figures& figures) const;
};

}  // namespace cuslice::ledger
