// SPDX-License-Identifier: Apache-2.0
// Reading one file of settings.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "config/load.h"
#include "config/resolve.h"
#include "config/text_file.h"

namespace cuslice {
namespace {

// Nobody may enter a folder on the way to it, so nobody can have meant it: a HOME of another user, as in containers. A
// path alone is opened wherever the folders may be entered, whoever may read the file.
bool is_unreachable(const char* path) {
    const int descriptor = ::open(path, O_PATH | O_CLOEXEC);
    if (descriptor < 0)
        return errno == EACCES;
    ::close(descriptor);
    return false;
}

bool runs_code_or_writes_files(const Entry& entry) {
    switch (entry.key) {
        case Key::driver:
        case Key::record:
        case Key::dir:
            return true;
        case Key::log:
            return entry.value.find(':') != entry.value.npos;
        default:
            return false;
    }
}

// The user's file is found by a variable that programs hand on, as sudo may from one user to the next. Somebody else's
// chooses limits at most.
bool check_file_of_others(const Settings& settings, ConfigError& error) {
    for (const Entry& entry : settings.entries()) {
        const bool of_this_file = entry.rank.source == Source::user_file && entry.rank.level == 0;
        if (!of_this_file || !runs_code_or_writes_files(entry))
            continue;
        Reason why(traits_of(entry.key).name);
        why.append(
            " is not taken from a file that another user can write: it could choose code to run or files to "
            "write to");
        return refuse_entry(entry, why, error);
    }
    return true;
}

// `state` stays `absent` or `unreachable` where there is none, which is no error of a usual place.
bool find_file(Settings& settings, const char* path, Source source, TextFile& file, FileState& state,
               ConfigError& error) {
    state = FileState::absent;
    const int code = file.open(path);
    if (code == 0) {
        state = FileState::found;
        return true;
    }
    const bool none_there = code == ENOENT || code == ENOTDIR;
    if (none_there && source != Source::config_file)
        return true;
    if (source == Source::user_file && code == EACCES && is_unreachable(path)) {
        state = FileState::unreachable;
        settings.pass_over(path);
        return true;
    }
    Reason why;
    explain_errno(code, why);
    return error.set(path, why);
}

bool read_file(Settings& settings, const char* path, Source source, TextFile& file, OpenToml open_toml,
               ConfigError& error, Take take) {
    Reason why;
    if (!file.read(kMostOfSettings, why))
        return error.set(path, why);
    cuslice_toml_parse_function* const parse = open_toml(why);
    if (parse == nullptr)
        return error.set(path, why);
    return load_file_text(settings, file.view(), path, source, parse, error, take);
}

bool others_can_write(const FileRights& rights) {
    const bool own = rights.owner == 0 || rights.owner == static_cast<unsigned>(::syscall(SYS_geteuid));
    return !own || (rights.mode & S_IWOTH) != 0;
}

}  // namespace

bool load_file(Settings& settings, const char* path, Source source, OpenToml open_toml, FileState& state,
               ConfigError& error) {
    TextFile file;
    FileRights rights;
    if (!find_file(settings, path, source, file, state, error))
        return false;
    if (state != FileState::found)
        return true;
    Reason why;
    if (!file.look(rights, why))
        return error.set(path, why);
    if (!read_file(settings, path, source, file, open_toml, error, Take::everything))
        return false;
    return source != Source::user_file || !others_can_write(rights) || check_file_of_others(settings, error);
}

bool load_system_file(Settings& settings, const SystemPlaces& system, OpenToml open_toml, FileState& state,
                      ConfigError& error, Take take) {
    TextFile file;
    FileRights rights;
    if (!find_file(settings, system.file, Source::system_file, file, state, error))
        return false;
    if (state != FileState::found)
        return true;
    Reason why;
    if (!file.look(rights, why) || !only_root_can_change(rights, system, "ceilings", why))
        return error.set(system.file, why);
    return read_file(settings, system.file, Source::system_file, file, open_toml, error, take);
}

bool load_named_file(Settings& settings, const char* path, std::string_view origin, OpenToml open_toml,
                     FileState& state, ConfigError& error) {
    if (load_file(settings, path, Source::config_file, open_toml, state, error))
        return true;
    // An error without a line concerns the whole file: report it for the setting that names the file.
    if (error.line != 0)
        return false;
    const Reason why(error.reason);
    return error.set(origin, path, why);
}

}  // namespace cuslice
