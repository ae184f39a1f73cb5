// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/record_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "config/handover.h"
#include "config/load.h"
#include "config/resolve.h"
#include "policy/base/configured_file.h"
#include "policy/trace/file.h"

namespace cuslice::cli {
namespace {

// Made and removed again: nothing else knows of read-only file systems, quotas, and folders that only look writable.
std::string why_not_made(const char* path) {
    ConfiguredFile record(path);
    FileError error;
    const int file = record.make(error);
    if (file < 0)
        return std::string("cannot be made: ") + error.text();
    ::close(file);
    record.remove();
    return "";
}

std::string why_not_written(const char* path, const struct stat& info) {
    if (S_ISREG(info.st_mode))
        return "is there already, and nothing is overwritten: remove it, or name another file";
    if (!S_ISCHR(info.st_mode))
        return "is not a regular file";
    FileError error;
    const int file = ConfiguredFile(path).append(error);
    if (file < 0)
        return std::string("cannot be written: ") + error.text();
    ::close(file);
    return "";
}

// A file of settings may ask for stacks wherever there is a recording.
bool asks_for_stacks(const Settings& settings, ConfigError& error) {
    const Entry* const stacks = find(settings, Key::record_stacks);
    if (stacks == nullptr || stacks->number == 0 || stacks->rank.source != Source::flag)
        return false;
    refuse_entry(*stacks, "stacks go into a recording: name its file with --record", error);
    return true;
}

}  // namespace

bool check_record(const Settings& settings, const Environment& environment, ConfigError& error) {
    const Entry* entry = find(settings, Key::record);
    if (entry == nullptr)
        return !asks_for_stacks(settings, error);
    const bool from_outside =
        entry->rank.level != 0 || entry->rank.source == Source::user_file || entry->rank.source == Source::system_file;
    if (from_outside && environment.get(kHandOver))
        return true;
    const trace::Path path = trace::file_name(entry->value, ::getpid(), 0);
    struct stat info {};
    const bool there = ::stat(path.c_str(), &info) == 0;
    const std::string why = there ? why_not_written(path.c_str(), info) : why_not_made(path.c_str());
    if (why.empty())
        return true;
    refuse_entry(*entry, why, error);
    error.value.assign(path);
    return false;
}

}  // namespace cuslice::cli
