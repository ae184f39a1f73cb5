// SPDX-License-Identifier: Apache-2.0
#include "shim/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "config/at_load.h"
#include "config/printable.h"
#include "config/resolve.h"
#include "policy/base/configured_file.h"
#include "policy/base/own_descriptors.h"
#include "shim/process/process.h"
#include "virtual_gpu/selection/host_environment.h"

namespace cuslice {

namespace {

constinit FileIdentity stderr_at_load;

LogSetting setting() {
    return process().readiness() == Readiness::bad_configuration ? LogSetting{} : log_for(process().settings());
}

// Descriptor 2 is stderr as long as it is what it was when the library was loaded. A program that closes it gets the
// number for some file of its own, which no line of ours may get into; another may have redirected its stderr. Who
// redirects keeps the number over exec, and has lines appended.
bool is_stderr() {
    const FileIdentity now = identity_of(STDERR_FILENO);
    if (!now.mode || now == stderr_at_load)
        return now.mode != 0;
    if (fcntl(STDERR_FILENO, F_GETFD) & FD_CLOEXEC)
        return false;
    if (S_ISREG(now.mode))
        return fcntl(STDERR_FILENO, F_GETFL) & O_APPEND;
    return S_ISFIFO(now.mode) || isatty(STDERR_FILENO);
}

void write_line(int fd, std::string_view line) {
    if (fd == STDERR_FILENO && !is_stderr())
        return;
    FixedText<2304> whole(line);
    whole.append('\n');
    write_at_once(fd, whole.c_str(), whole.view().size());
}

// Once: the lines themselves go to stderr then.
void say_refused(std::string_view path, const char* why) {
    static constinit std::atomic<bool> said{false};
    if (said.exchange(true, std::memory_order_relaxed))
        return;
    LogLine line("cuslice: log: ");
    append_printable(line, path);
    line.append(" is not written to, and messages come here: ", why);
    write_line(STDERR_FILENO, line);
}

}  // namespace

CUSLICE_AT_LOAD void note_stderr() { stderr_at_load = identity_of(STDERR_FILENO); }

bool wants(LogLevel level) {
    const Readiness known = process().readiness();
    return known != Readiness::not_yet && level <= setting().level;
}

int open_log_file() {
    const LogSetting log = setting();
    if (log.file.empty() || has_more_rights())
        return -1;
    // Opened for each of the few lines, so that no descriptor of ours stands in the host's way; and a pipe without a
    // reader isn't waited for.
    FileError error;
    const int file = ConfiguredFile(log.file).append_or_make(error);
    if (file < 0 && error.refused)
        say_refused(log.file, error.refused);
    return keep_descriptor(file);
}

void log_line(LogLevel level, const LogLine& line) {
    if (!wants(level))
        return;
    const int saved_errno = errno;
    FixedText<1600> whole("cuslice: ");
    whole.append(line);
    const int file = open_log_file();
    write_line(file < 0 ? STDERR_FILENO : file, whole.view());
    if (file >= 0)
        close(file);
    errno = saved_errno;
}

void log_to_stderr(std::string_view whole_line) {
    const int saved_errno = errno;
    write_line(STDERR_FILENO, whole_line);
    errno = saved_errno;
}

void log_bad_configuration() {
    FixedText<2200> line(line_of(process().error()));
    log_to_stderr(line.append("; no GPU will be used"));
}

}  // namespace cuslice
