// SPDX-License-Identifier: Apache-2.0
#include "cli/text/process_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cuslice::cli {
namespace {

// The kernel gives a page or so at a time.
std::string read_file(const std::string& path, size_t most) {
    std::string bytes(most, '\0');
    const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return {};
    size_t size = 0;
    ssize_t more = 1;
    while (size < most && more > 0) {
        more = ::read(file, bytes.data() + size, most - size);
        size += more > 0 ? static_cast<size_t>(more) : 0;
    }
    ::close(file);
    bytes.resize(size);
    return bytes;
}

}  // namespace

std::string read_process_text(const ledger::ProcessIdentity& process, unsigned owner, std::string_view file,
                              size_t most) {
    if (process.pid <= 0 || process.pid_namespace == 0)
        return {};
    if (process.pid_namespace != ledger::own_pid_namespace())
        return {};
    const std::string folder = "/proc/" + std::to_string(process.pid);
    std::string bytes = read_file(folder + "/" + std::string(file), most);
    // Asked afterwards: what was read is of the process that is there now.
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0 || info.st_uid != owner)
        return {};
    const bool same = ledger::is_same_start(ledger::start_time_of(process.pid), process.start_time);
    return same ? bytes : std::string();
}

}  // namespace cuslice::cli
