#include "shim/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "config/resolve.h"
#include "virtual_gpu/process.h"

namespace cuslice {

namespace {

LogSetting setting() {
    return process().readiness() == Readiness::bad_configuration ? LogSetting{} : log_for(process().settings());
}

void write_line(int fd, std::string_view line) {
    FixedText<2304> whole(line);
    whole.append('\n');
    // A line that can't be written is lost: the host's work goes on.
    const ssize_t written = write(fd, whole.c_str(), whole.view().size());
    static_cast<void>(written);
}

}  // namespace

bool wants(LogLevel level) {
    const Readiness known = process().readiness();
    return known != Readiness::not_yet && level <= setting().level;
}

int open_log_file() {
    const LogSetting log = setting();
    if (log.file.empty()) return -1;
    // Opened for each of the few lines, so that no descriptor of ours stands in the host's way.
    const FixedText<4096> path(log.file);
    return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

void say(LogLevel level, const LogLine& line) {
    if (!wants(level)) return;
    const int saved_errno = errno;
    FixedText<1600> whole("cuslice: ");
    whole.append(line.view());
    const int file = open_log_file();
    write_line(file < 0 ? STDERR_FILENO : file, whole.view());
    if (file >= 0) close(file);
    errno = saved_errno;
}

void say_to_stderr(std::string_view whole_line) {
    const int saved_errno = errno;
    write_line(STDERR_FILENO, whole_line);
    errno = saved_errno;
}

}  // namespace cuslice
