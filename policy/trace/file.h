#pragma once
#include <sys/types.h>

#include <atomic>
#include <string_view>

#include "config/text.h"
#include "policy/base/configured_file.h"
#include "policy/base/mutex.h"
#include "policy/base/own_descriptors.h"

namespace cuslice::trace {

using Path = FixedText<4096>;

/// How a process calls its file: the name as given, with the pid in place of each %p. Where that is taken already,
/// another one of the same kind: `attempt` counts them from 0. Without %p they are FILE, FILE.812, FILE.812.2, …; with
/// it FILE, FILE.2, … Pure.
Path file_name(std::string_view name, pid_t pid, unsigned attempt);

/// The file that this process appends rows to. Thread-safe but for make().
class File {
  public:
    /// Makes a new file under the first name that is free, and writes the header; an existing one is never touched. A
    /// character device is written to as it is. False: `why` says what is in the way, with the path.
    bool make(std::string_view name, Reason& why);

    enum class Appended {
        done,
        not_ours,  // this is a child that the C library's fork knows nothing of: the file is its parent's
        failed
    };
    /// Writes one or more whole rows in one piece: all of them or, where space ends, a part. Both keep errno.
    Appended append(std::string_view rows, Reason& why);

    const Path& path() const { return path_; }

  private:
    bool try_to_make(std::string_view name, Reason& why);
    Appended try_to_append(std::string_view rows, Reason& why);
    int make_new(FileError& error);
    int open_existing(FileError& error);
    bool is_ours(int file) const;
    int descriptor();
    bool note_identity(int file);
    void note_process();

    Path path_;
    pid_t owner_ = 0;
    const int* in_owner_ = nullptr;  // what is 0 in a child; null where the kernel has no such memory
    FileIdentity identity_;
    std::atomic<int> file_{-1};
    std::atomic<std::uint64_t> written_{0};
    Mutex mutex_{LockRank::trace_file};  // over opening it again
};

}  // namespace cuslice::trace
