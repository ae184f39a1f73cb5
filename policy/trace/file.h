// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <atomic>
#include <string_view>

#include "config/text.h"
#include "policy/base/configured_file.h"
#include "policy/base/mutex.h"
#include "policy/base/own_descriptors.h"
#include "policy/trace/row.h"
#include "policy/trace/windows.h"

namespace cuslice::trace {

using Path = FixedText<4096>;

/// How a process calls its file: the name as given, with the pid in place of each %p. Where that is taken already,
/// another one of the same kind: `attempt` counts them from 0. Without %p they are FILE, FILE.812, FILE.812.2, …; with
/// it FILE, FILE.2, … Pure.
Path file_name(std::string_view name, pid_t pid, unsigned attempt);

/// The two forms of a recording. Names that end in ".trace" are of compact ones, all others of text.
enum class Form : uint8_t { csv, compact };
Form form_of(std::string_view name);

/// The file that this process appends rows to: through memory that is mapped of it, or by write(2) where its system
/// doesn't suit that. Thread-safe but for make().
class File {
  public:
    /// Makes a new file under the first name that is free, and writes the header; an existing one is never touched. A
    /// character device is written to as it is. False: `why` says what is in the way, with the path.
    bool make(std::string_view name, Reason& why, Columns columns = Columns::usual);

    enum class Appended {
        done,
        not_ours,  // this is a child that the C library's fork knows nothing of: the file is its parent's
        failed
    };
    /// Appends one row of the file's form, or several records that belong together, in one piece: all of it or, where
    /// space ends, a part. Keeps errno. `error` is set where it failed; cant_write() puts it into words.
    Appended append(std::string_view row, int& error);
    void cant_write(int error, Reason& why) const;

    /// No more is expected: cuts off what is mapped and has no rows. Rows that come nevertheless are written. Keeps
    /// errno; does nothing in a child.
    void finish();

    const Path& path() const { return path_; }
    Form form() const { return form_; }

  private:
    bool try_to_make(std::string_view name, Columns columns, Reason& why);
    int make_new(FileError& error);
    bool open_there(std::string_view name, int& file, Reason& why);
    Appended write_header(Columns columns, int& error);
    void begin_to_map(int file);
    Appended append_slowly(std::string_view row, int& error);
    Appended write_row(std::string_view row, int& error);
    bool make_room();
    void settle() CUSLICE_REQUIRES(mutex_);
    bool settled();

    bool is_ours(int file) const;
    int descriptor();
    int descriptor_again() CUSLICE_REQUIRES(mutex_);
    int open_again(FileError& error);
    bool let_write(FileError& error);
    bool is_owner() const { return in_owner_ ? *in_owner_ != 0 : is_owner_by_pid(); }
    bool is_owner_by_pid() const;
    void note_process();

    Path path_;
    Form form_ = Form::csv;
    pid_t owner_ = 0;
    const int* in_owner_ = nullptr;  // what is 0 in a child; null where the kernel has no such memory
    FileIdentity identity_;
    mode_t mode_ = 0;  // as it was made: while it is mapped, nobody may write to it
    Windows windows_;
    std::atomic<int> file_{-1};
    std::atomic<bool> by_write_{true};   // nothing is mapped any more
    std::atomic<uint64_t> written_{0};   // bytes of the file, by_write_
    Mutex mutex_{LockRank::trace_file};  // over opening it again, and over its windows
};

}  // namespace cuslice::trace
